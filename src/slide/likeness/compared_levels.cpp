#include "slide/likeness/compared_levels.hpp"

#include <algorithm>
#include <cmath>

#include "slide/level_factor.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t most_compared_pixels = std::int64_t{1} << 23;  ///< of a level that is looked at whole
constexpr std::int64_t most_held_pixels = std::int64_t{1} << 25;      ///< of the parts of a level
constexpr std::int64_t most_tile_pixels = std::int64_t{1} << 24;
constexpr double largest_factor = 1024.0;          ///< a cell of a larger one is too large to be read
constexpr std::int64_t largest_textless_side = 8;  ///< two letters of 3 x 5 pixels take 7
constexpr double least_cell_side = 4.0;            ///< pixels of the smaller level
constexpr std::int64_t most_parts = 8;             ///< tiles of a level that has the size of one

constexpr double most_quick_pixels = 5 << 20;  ///< to read; opening takes some hundredths of a second
constexpr double most_slow_pixels = 5 << 18;   ///< of JPEG 2000

// Of single places.
constexpr double least_place_factor = 1.5;
constexpr double most_displaced = 2.0;  ///< pixels of the smaller level

/// Side of a cell in the larger level: so many of its tiles that some pixels of the smaller one lie in them.
double cell_side(std::int64_t tile, double factor) {
  return static_cast<double>(tile) * std::ceil(least_cell_side * factor / static_cast<double>(tile));
}

bool is_power_of_two(double factor) { return std::exp2(std::round(std::log2(factor))) == factor; }

double ratio_of(std::int64_t larger, std::int64_t smaller) {
  return static_cast<double>(larger) / static_cast<double>(smaller);
}

/// Pixels of the smaller level that places may be displaced by as the factor isn't whole.
double misfit_of(double factor, std::int64_t smaller) {
  return std::abs(factor - std::round(factor)) * static_cast<double>(smaller) / factor;
}

}  // namespace

ComparisonPlan::ComparisonPlan(const Level& base, const Level& large, const Level& small)
    : factor_x(factors_between(base, large, small).x),
      factor_y(factors_between(base, large, small).y),
      cell_width(cell_side(large.tile_width, factor_x)),
      cell_height(cell_side(large.tile_height, factor_y)) {
  const std::int64_t pixels = small.width * small.height;
  is_tiny = std::max(small.width, small.height) <= largest_textless_side;
  is_beyond_comparison = std::max(factor_x, factor_y) > largest_factor || tile_pixels(small) > most_tile_pixels ||
                         tile_pixels(large) > most_tile_pixels;
  const bool is_slow = large.codec == Codec::jpeg2000 || small.codec == Codec::jpeg2000;
  const double most_pixels = is_slow ? most_slow_pixels : most_quick_pixels;
  // Small type is found anywhere in a level of a label's size.
  const bool is_quick = static_cast<double>(pixels) <= most_pixels;
  const bool is_sampled =
      pixels > most_compared_pixels || (!is_quick && is_power_of_two(factor_x) && is_power_of_two(factor_y));
  const std::int64_t sampled = std::clamp<std::int64_t>(most_held_pixels / tile_pixels(small), 1, most_parts);
  parts = is_sampled ? sampled : pixels;
  margin = factor_x == std::round(factor_x) && factor_y == std::round(factor_y) ? 1 : 2;
  const bool is_cut = large.cut_factor > 0 || small.cut_factor > 0;
  const double misfit = std::max(misfit_of(is_cut ? factor_x : ratio_of(large.width, small.width), small.width),
                                 misfit_of(is_cut ? factor_y : ratio_of(large.height, small.height), small.height));
  const double corner_pixels = most_corner_cells * cell_width * cell_height + static_cast<double>(tile_pixels(small));
  has_places = pixels <= most_compared_pixels && misfit <= most_displaced &&
               std::min(factor_x, factor_y) >= least_place_factor && 4.0 * corner_pixels <= most_pixels;
}

std::int64_t tile_pixels(const Level& level) noexcept { return level.tile_width * level.tile_height; }

}  // namespace slidestream
