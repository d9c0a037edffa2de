#include "slide/lost_tiles.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace slidestream {
namespace {

/// Tiles of level 0 along an axis.
struct TilesUnder {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

/// What lies under pixels [begin, end) of a level, but for what their first and last one alone may touch: where the
/// factor isn't whole, they reach over a neighbour.
TilesUnder tiles_under(std::int64_t begin, std::int64_t end, double factor, std::int64_t side, std::int64_t count) {
  const std::int64_t inset = end - begin > 2 ? 1 : 0;
  const auto from = static_cast<std::int64_t>(static_cast<double>(begin + inset) * factor);
  const auto to = static_cast<std::int64_t>(std::ceil(static_cast<double>(end - inset) * factor));
  const std::int64_t first = std::min(from / side, count - 1);
  return {first, std::clamp((to + side - 1) / side, first + 1, count)};
}

/// Which tiles of level 0 the file has: sums, so that any rectangle of them takes four. 4 bytes per tile.
class TilesOfBase {
 public:
  explicit TilesOfBase(const Slide& slide) {
    const Level& base = slide.info().levels.front();
    stride_ = base.columns + 1;
    sums_.resize(static_cast<std::size_t>(stride_ * (base.rows + 1)));
    for (std::int64_t row = 0; row < base.rows; ++row) {
      std::uint32_t in_row = 0;
      for (std::int64_t column = 0; column < base.columns; ++column) {
        if (slide.tile(0, row * base.columns + column).length != 0) ++in_row;
        sums_[index(column + 1, row + 1)] = sums_[index(column + 1, row)] + in_row;
      }
    }
  }

  bool has_any(const TilesUnder& columns, const TilesUnder& rows) const {
    const std::uint32_t above = sums_[index(columns.end, rows.first)] - sums_[index(columns.first, rows.first)];
    return sums_[index(columns.end, rows.end)] - sums_[index(columns.first, rows.end)] != above;
  }

 private:
  std::size_t index(std::int64_t column, std::int64_t row) const {
    return static_cast<std::size_t>(row * stride_ + column);
  }

  std::int64_t stride_ = 0;
  std::vector<std::uint32_t> sums_;  ///< of the tiles above and to the left
};

}  // namespace

bool has_any_tile(const Slide& slide, std::size_t level) {
  const Level& here = slide.info().levels.at(level);
  const std::int64_t tiles = here.columns * here.rows;
  for (std::int64_t index = 0; index < tiles; ++index) {
    if (slide.tile(level, index).length != 0) return true;
  }
  return false;
}

std::int64_t count_lost_tiles(const Slide& slide, std::size_t level) {
  const SlideInfo& info = slide.info();
  const Level& base = info.levels.front();
  const Level& here = info.levels.at(level);
  const double factor_x = info.downsample_x(level);
  const double factor_y = info.downsample_y(level);
  std::unique_ptr<const TilesOfBase> tiles;
  std::int64_t lost = 0;
  for (std::int64_t row = 0; row < here.rows; ++row) {
    const std::int64_t top = row * here.tile_height;
    const std::int64_t bottom = std::min(top + here.tile_height, here.height);
    const TilesUnder rows = tiles_under(top, bottom, factor_y, base.tile_height, base.rows);
    for (std::int64_t column = 0; column < here.columns; ++column) {
      if (slide.tile(level, row * here.columns + column).length != 0) continue;
      const std::int64_t left = column * here.tile_width;
      const std::int64_t right = std::min(left + here.tile_width, here.width);
      const TilesUnder columns = tiles_under(left, right, factor_x, base.tile_width, base.columns);
      if (level > 0 && tiles == nullptr) tiles = std::make_unique<const TilesOfBase>(slide);
      if (level == 0 || tiles->has_any(columns, rows)) ++lost;
    }
  }
  return lost;
}

std::string lost_tiles_line(const Slide& slide) {
  if (!has_any_tile(slide, 0)) {
    const Level& base = slide.info().levels.front();
    return "level 0 lacks all of its tiles (" + std::to_string(base.columns * base.rows) + "): the slide is white";
  }
  std::string counts;
  for (std::size_t level = 1; level < slide.info().levels.size(); ++level) {
    const std::int64_t lost = count_lost_tiles(slide, level);
    if (lost == 0) continue;
    counts += (counts.empty() ? "" : ", ") + std::to_string(lost) + " in level " + std::to_string(level);
  }
  if (counts.empty()) return counts;
  return "smaller levels lack tiles that level 0 has: " + counts +
         "; they are white there, and count as glass where tissue is found";
}

}  // namespace slidestream
