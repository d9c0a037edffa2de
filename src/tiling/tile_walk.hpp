#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <slidestream/image.hpp>
#include <slidestream/slide.hpp>
#include <vector>

#include "tiling/window_plan.hpp"

/// \file
/// In which order a slide's tiles are decoded for its windows.

namespace slidestream {

/// What two rectangles have in common; its width or height isn't positive where that is nothing.
inline Rect intersection(const Rect& a, const Rect& b) {
  const std::int64_t x = std::max(a.x, b.x);
  const std::int64_t y = std::max(a.y, b.y);
  return {x, y, std::min(a.right(), b.right()) - x, std::min(a.bottom(), b.bottom()) - y};
}

/// The smallest rectangle that holds both; one without width adds nothing as the first of them.
inline Rect hull(const Rect& a, const Rect& b) {
  if (a.width == 0) return b;
  const std::int64_t x = std::min(a.x, b.x);
  const std::int64_t y = std::min(a.y, b.y);
  return {x, y, std::max(a.right(), b.right()) - x, std::max(a.bottom(), b.bottom()) - y};
}

/// Part of a tile that goes into a window. Rectangles are pixels of the level.
struct WindowPart {
  std::size_t window = 0;  ///< its place in the plan's list
  Rect whole;              ///< the window; it may reach beyond the level
  Rect part;               ///< inside the window, the tile and the level
};

/// A tile and all that it gives to the windows that are being made.
struct TileWork {
  std::int64_t tile = 0;  ///< its number in the level, row by row
  std::vector<WindowPart> parts;
};

/// Walks the tiles that windows touch, row by row from top to bottom. Rows of windows are taken in groups; within a
/// group each tile comes once, so with one group for all each tile of the slide comes once.
class TileWalk {
 public:
  /// \param rows_at_a_time  rows of windows in a group, at least 1. `level` and `plan` outlive the walk.
  TileWalk(const Level& level, const WindowPlan& plan, const Size& window, std::size_t rows_at_a_time);

  /// Goes to the next row of tiles that windows touch; false: there is none.
  bool next_row();
  /// Rows of windows [first, last) that this row of tiles touches.
  std::size_t first_row() const noexcept { return first_; }
  std::size_t last_row() const noexcept { return last_; }
  /// Goes to the row's next tile; false: there is none.
  bool next_tile(TileWork& work);

  /// How many tiles a window is made of.
  std::int32_t tiles_of(const Rect& window) const noexcept;

 private:
  std::int64_t first_tile_row(std::size_t row) const noexcept;
  std::int64_t last_tile_row(std::size_t row) const noexcept;
  void find_columns();

  const Level& level_;
  const WindowPlan& plan_;
  const Size window_;
  const std::size_t rows_at_a_time_;
  std::size_t group_begin_ = 0;
  std::size_t group_end_ = 0;
  std::int64_t tile_row_ = 0;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  std::vector<char> is_wanted_;        ///< of the columns of tiles
  std::vector<std::int64_t> columns_;  ///< of the row's tiles that are wanted
  std::size_t next_column_ = 0;        ///< in that list
};

/// The most windows of a slide that a row of tiles touches together, where no more than `rows` rows of them are taken
/// at a time.
std::int64_t most_windows_together(const Level& level, const WindowPlan& plan, const Size& window, std::size_t rows);

}  // namespace slidestream
