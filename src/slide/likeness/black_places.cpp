#include "slide/likeness/black_places.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "slide/likeness/level_cells.hpp"

namespace slidestream {
namespace {

constexpr std::size_t most_looks = 4;
constexpr int most_black = 4;           ///< of 255: codecs add some
constexpr double least_bright = 32.0;   ///< of 255: the ground of fluorescence is darker
constexpr std::int64_t least_side = 4;  ///< pixels: rests of cells at borders are no places

bool is_black(const LevelCell& cell) {
  if (std::min(cell.width, cell.height) < least_side) return false;
  for (std::int64_t y = 0; y < cell.height; ++y) {
    for (std::int64_t x = 0; x < cell.width; ++x) {
      if (cell.pixel(x, y) > most_black) return false;
    }
  }
  return true;
}

/// Of its middle: levels may lie some pixels apart, and gaps end beside cells.
bool is_bright(const LevelPicture& picture) {
  const std::int64_t left = picture.width / 4;
  const std::int64_t top = picture.height / 4;
  return picture.mean(left, top, picture.width - left, picture.height - top) >= least_bright;
}

}  // namespace

BlackPlaces look_at_black_places(const ComparedLevels& levels, const std::vector<LevelCell>& cells) {
  std::vector<const LevelCell*> black;
  for (const LevelCell& cell : cells) {
    if (is_black(cell)) black.push_back(&cell);
  }
  const std::size_t count = std::min(most_looks, black.size());
  BlackPlaces places;
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<CellSight> sight = see(levels, *black[black.size() * (2 * i + 1) / (2 * count)]);
    if (!sight) continue;
    ++places.looked_at;
    if (is_bright(sight->picture)) ++places.lost;
  }
  return places;
}

}  // namespace slidestream
