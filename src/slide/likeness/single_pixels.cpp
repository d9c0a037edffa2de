#include "slide/likeness/single_pixels.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace slidestream {
namespace {

constexpr std::int64_t most_pixels_along = 16;
constexpr std::int64_t least_pixels_along = 5;
constexpr std::int64_t largest_copied_factor = 32;

/// Pixels of a cell along an axis, without those at its border: what lies beside what these cover isn't seen.
std::vector<std::int64_t> spread_pixels(std::int64_t size) {
  std::vector<std::int64_t> spread;
  const std::int64_t step = std::max<std::int64_t>(1, (size - 3 + most_pixels_along) / most_pixels_along);
  for (std::int64_t pixel = 1; pixel < size - 1; pixel += step) spread.push_back(pixel);
  return spread;
}

/// Where the larger level's pixels lie in a picture of it that begins at `begin`.
void place(std::vector<std::int64_t>& places, const std::vector<std::int64_t>& pixels, std::int64_t first,
           double factor, std::int64_t offset, std::int64_t begin, std::int64_t size) {
  places.clear();
  for (const std::int64_t pixel : pixels) {
    const std::int64_t at = std::llround(static_cast<double>(first + pixel) * factor) + offset - begin;
    places.push_back(std::clamp<std::int64_t>(at, 0, size - 1));
  }
}

}  // namespace

std::vector<PixelPair> closest_pixels(const ComparedLevels& levels, const LevelCell& cell, const CellSight& sight) {
  const ComparisonPlan& plan = levels.plan;
  const std::int64_t covered_x = std::llround(plan.factor_x);
  const std::int64_t covered_y = std::llround(plan.factor_y);
  const std::vector<std::int64_t> across = spread_pixels(cell.width);
  const std::vector<std::int64_t> down = spread_pixels(cell.height);
  if (std::max(covered_x, covered_y) > largest_copied_factor) return {};
  if (static_cast<std::int64_t>(std::min(across.size(), down.size())) < least_pixels_along) return {};
  std::vector<PixelPair> pairs;
  for (const std::int64_t y : down) {
    for (const std::int64_t x : across) pairs.push_back({static_cast<std::uint8_t>(cell.pixel(x, y)), 0});
  }
  std::vector<PixelPair> closest = pairs;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> columns;
  std::vector<std::int64_t> rows;
  for (std::int64_t by_y = -covered_y; by_y < 2 * covered_y; ++by_y) {
    place(rows, down, cell.level_top(), plan.factor_y, by_y, sight.rows.begin, sight.picture.height);
    for (std::int64_t by_x = -covered_x; by_x < 2 * covered_x; ++by_x) {
      place(columns, across, cell.level_left(), plan.factor_x, by_x, sight.columns.begin, sight.picture.width);
      std::int64_t squares = 0;
      std::size_t i = 0;
      for (const std::int64_t row : rows) {
        const std::uint8_t* pixels = sight.picture.pixels.data() + row * sight.picture.width;
        for (const std::int64_t column : columns) {
          PixelPair& pair = pairs[i++];
          pair.large = pixels[column];
          const std::int64_t difference = std::int64_t{pair.small} - pair.large;
          squares += difference * difference;
        }
        if (squares >= least) break;
      }
      if (squares >= least) continue;
      least = squares;
      closest = pairs;
    }
  }
  return closest;
}

}  // namespace slidestream
