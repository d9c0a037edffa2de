#include "slide/likeness/swapped_colours.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/tile_rule.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t colour_blocks_along = 8;
constexpr double least_difference = 16.0;  ///< of 255 in red and 255 in blue, added
constexpr double least_gain = 3.0;         ///< so many times less is what differs once they are exchanged

struct RedAndBlue {
  double red = 0.0;
  double blue = 0.0;
};

/// RGB of a rectangle of a level.
struct ColourPicture {
  std::int64_t width = 0;
  std::vector<std::uint8_t> samples;

  RedAndBlue mean(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom) const {
    std::uint64_t red = 0;
    std::uint64_t blue = 0;
    for (std::int64_t y = top; y < bottom; ++y) {
      const std::uint8_t* row = samples.data() + 3 * y * width;
      for (std::int64_t x = left; x < right; ++x) {
        red += row[3 * x];
        blue += row[3 * x + 2];
      }
    }
    const auto count = static_cast<double>((right - left) * (bottom - top));
    return {static_cast<double>(red) / count, static_cast<double>(blue) / count};
  }
};

std::optional<ColourPicture> read_colours(const Slide& slide, std::size_t level, const PixelRange& columns,
                                          const PixelRange& rows) {
  return unless_bad([&] {
    ColourPicture picture{columns.size(),
                          std::vector<std::uint8_t>(static_cast<std::size_t>(3 * columns.size() * rows.size()))};
    read_rgb(slide, level, columns.begin, rows.begin,
             {picture.samples.data(), 3 * columns.size(), columns.size(), rows.size(), rgb_format});
    return picture;
  });
}

}  // namespace

bool has_swapped_colours(const ComparedLevels& levels, const LevelCell& cell) {
  const Level& large = levels.large;
  const Level& small = levels.small;
  const ComparisonPlan& plan = levels.plan;
  if (is_grey(large.colour) || is_grey(small.colour)) return false;
  const std::int64_t left = cell.level_left();
  const std::int64_t height = std::max<std::int64_t>(1, cell.height / 3);
  const std::int64_t top = cell.level_top() + (cell.height - height) / 2;
  const PixelRange columns(left, left + cell.width, plan.factor_x, large.width);
  const PixelRange rows(top, top + height, plan.factor_y, large.height);
  levels.budget.check();
  const std::optional<ColourPicture> of_small = read_colours(
      levels.slide, levels.level, {left, left + cell.width, 1.0, small.width}, {top, top + height, 1.0, small.height});
  const std::optional<ColourPicture> of_large = read_colours(levels.slide, levels.larger, columns, rows);
  if (!of_small || !of_large) return false;
  const std::int64_t step_x = std::max<std::int64_t>(1, cell.width / colour_blocks_along);
  const std::int64_t step_y = std::max<std::int64_t>(1, height / colour_blocks_along);
  double blocks = 0.0;
  double as_they_are = 0.0;
  double swapped = 0.0;
  for (std::int64_t y = 0; y + step_y <= height; y += step_y) {
    for (std::int64_t x = 0; x + step_x <= cell.width; x += step_x) {
      const PixelRange across(left + x, left + x + step_x, plan.factor_x, large.width);
      const PixelRange down(top + y, top + y + step_y, plan.factor_y, large.height);
      const RedAndBlue a = of_small->mean(x, y, x + step_x, y + step_y);
      const RedAndBlue b =
          of_large->mean(across.begin - columns.begin, down.begin - rows.begin,
                         std::min(across.end, columns.end) - columns.begin, std::min(down.end, rows.end) - rows.begin);
      as_they_are += std::abs(a.red - b.red) + std::abs(a.blue - b.blue);
      swapped += std::abs(a.red - b.blue) + std::abs(a.blue - b.red);
      blocks += 1.0;
    }
  }
  return as_they_are > least_difference * blocks && as_they_are > least_gain * swapped;
}

}  // namespace slidestream
