#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/slide.hpp>

#include "slide/open_budget.hpp"

// How much of two levels is compared, and where.

namespace slidestream {

/// What is looked at of two levels to compare them.
struct ComparisonPlan {
  /// \param base  level 0
  ComparisonPlan(const Level& base, const Level& large, const Level& small);

  double factor_x;
  double factor_y;
  double cell_width;  ///< pixels of the larger level
  double cell_height;
  bool is_tiny;               ///< it has no room for text, and is like any
  bool is_beyond_comparison;  ///< by its factor or the size of tiles
  std::int64_t parts;         ///< tiles of the smaller one, at most
  bool has_places;            ///< places are judged one by one, too, and those of the corners
  std::int64_t margin;        ///< pixels of the smaller one that a pixel may be displaced by
};

/// A level, and the one that it may be a smaller level of.
struct ComparedLevels {
  ComparedLevels(const Slide& of, std::size_t number_of_larger, std::size_t number, const OpenBudget& asked)
      : ComparedLevels(of, number_of_larger, number, of.coded_level(number), asked) {}

  /// \param as  what the level is taken for; it must outlive this
  ComparedLevels(const Slide& of, std::size_t number_of_larger, std::size_t number, const Level& as,
                 const OpenBudget& asked)
      : slide(of),
        larger(number_of_larger),
        level(number),
        large(of.coded_level(larger)),
        small(as),
        plan(of.coded_level(0), large, small),
        budget(asked) {}

  const Slide& slide;
  std::size_t larger;
  std::size_t level;
  const Level& large;
  const Level& small;
  ComparisonPlan plan;
  const OpenBudget& budget;
};

/// So many cells of each corner are judged.
inline constexpr int most_corner_cells = 2;

/// Pixels of a tile.
std::int64_t tile_pixels(const Level& level) noexcept;

}  // namespace slidestream
