#include "tiling/tile_walk.hpp"

#include <algorithm>

namespace slidestream {

namespace {

/// Numbers of the first and the last tile that samples [begin, begin + length) of an axis touch.
struct TileSpan {
  std::int64_t first;
  std::int64_t last;
};

TileSpan tiles_along(std::int64_t begin, std::int64_t length, std::int64_t tile, std::int64_t image) {
  return {begin / tile, (std::min(begin + length, image) - 1) / tile};
}

}  // namespace

TileWalk::TileWalk(const Level& level, const WindowPlan& plan, const Size& window, std::size_t rows_at_a_time)
    : level_(level),
      plan_(plan),
      window_(window),
      rows_at_a_time_(rows_at_a_time),
      is_wanted_(static_cast<std::size_t>(level.columns)) {}

std::int64_t TileWalk::first_tile_row(std::size_t row) const noexcept {
  return tiles_along(plan_.rows[row].y, window_.height, level_.tile_height, level_.height).first;
}

std::int64_t TileWalk::last_tile_row(std::size_t row) const noexcept {
  return tiles_along(plan_.rows[row].y, window_.height, level_.tile_height, level_.height).last;
}

std::int32_t TileWalk::tiles_of(const Rect& window) const noexcept {
  const TileSpan across = tiles_along(window.x, window.width, level_.tile_width, level_.width);
  const TileSpan down = tiles_along(window.y, window.height, level_.tile_height, level_.height);
  return static_cast<std::int32_t>((across.last - across.first + 1) * (down.last - down.first + 1));
}

bool TileWalk::next_row() {
  do {
    ++tile_row_;
    if (group_begin_ == group_end_ || tile_row_ > last_tile_row(group_end_ - 1)) {
      group_begin_ = group_end_;
      if (group_begin_ == plan_.rows.size()) return false;
      group_end_ = std::min(plan_.rows.size(), group_begin_ + rows_at_a_time_);
      tile_row_ = first_tile_row(group_begin_);
    }
    first_ = std::max(first_, group_begin_);
    while (first_ < group_end_ && last_tile_row(first_) < tile_row_) ++first_;
    last_ = first_;
    while (last_ < group_end_ && first_tile_row(last_) <= tile_row_) ++last_;
  } while (first_ == last_);
  find_columns();
  return true;
}

void TileWalk::find_columns() {
  std::fill(is_wanted_.begin(), is_wanted_.end(), char{0});
  for (std::size_t row = first_; row < last_; ++row) {
    const WindowRow& windows = plan_.rows[row];
    for (std::size_t i = windows.first; i < windows.first + windows.count; ++i) {
      const TileSpan tiles = tiles_along(plan_.columns[i], window_.width, level_.tile_width, level_.width);
      std::fill(is_wanted_.begin() + tiles.first, is_wanted_.begin() + tiles.last + 1, char{1});
    }
  }
  columns_.clear();
  for (std::int64_t column = 0; column < level_.columns; ++column) {
    if (is_wanted_[static_cast<std::size_t>(column)] != 0) columns_.push_back(column);
  }
  next_column_ = 0;
}

bool TileWalk::next_tile(TileWork& work) {
  if (next_column_ == columns_.size()) return false;
  const std::int64_t column = columns_[next_column_++];
  work.tile = tile_row_ * level_.columns + column;
  work.parts.clear();
  const Rect tile =
      intersection({column * level_.tile_width, tile_row_ * level_.tile_height, level_.tile_width, level_.tile_height},
                   {0, 0, level_.width, level_.height});
  for (std::size_t row = first_; row < last_; ++row) {
    const WindowRow& windows = plan_.rows[row];
    const auto begin = plan_.columns.begin() + static_cast<std::ptrdiff_t>(windows.first);
    const auto end = begin + static_cast<std::ptrdiff_t>(windows.count);
    // The first window that reaches into the tile.
    for (auto at = std::upper_bound(begin, end, tile.x - window_.width); at != end && *at < tile.right(); ++at) {
      const Rect whole = {*at, windows.y, window_.width, window_.height};
      work.parts.push_back({static_cast<std::size_t>(at - plan_.columns.begin()), whole, intersection(whole, tile)});
    }
  }
  return true;
}

std::int64_t most_windows_together(const Level& level, const WindowPlan& plan, const Size& window, std::size_t rows) {
  TileWalk walk(level, plan, window, rows);
  std::int64_t most = 0;
  while (walk.next_row()) {
    const WindowRow& last = plan.rows[walk.last_row() - 1];
    most = std::max(most, static_cast<std::int64_t>(last.first + last.count - plan.rows[walk.first_row()].first));
  }
  return most;
}

}  // namespace slidestream
