#include "image/pyramid_layout.hpp"

#include <algorithm>

namespace slidestream {

namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }

constexpr Size level_size(Size image, int level) noexcept {
  const std::int64_t step = std::int64_t{1} << level;
  return {ceil_div(image.width, step), ceil_div(image.height, step)};
}

}  // namespace

PyramidLayout::PyramidLayout(Size image, int tile, int levels) : image_(image), tile_(tile), levels_(1) {
  // Not below one tile, or where that many levels are wanted, not below one pixel.
  const std::int64_t smallest = levels == 0 ? tile : 1;
  while (levels == 0 || levels_ < levels) {
    const Size last = level_size(image, levels_ - 1);
    if (std::max(last.width, last.height) <= smallest) break;
    ++levels_;
  }
}

Size PyramidLayout::size(int level) const noexcept { return level_size(image_, level); }

std::int64_t PyramidLayout::columns(int level) const noexcept { return ceil_div(size(level).width, tile_); }

std::int64_t PyramidLayout::rows(int level) const noexcept { return ceil_div(size(level).height, tile_); }

std::int64_t PyramidLayout::tiles() const noexcept {
  std::int64_t all = 0;
  for (int level = 0; level < levels_; ++level) all += tiles(level);
  return all;
}

Rect PyramidLayout::rect(int level, TileIndex index) const noexcept {
  const Size whole = size(level);
  const std::int64_t x = index.column * tile_;
  const std::int64_t y = index.row * tile_;
  return {x, y, std::min<std::int64_t>(tile_, whole.width - x), std::min<std::int64_t>(tile_, whole.height - y)};
}

std::int64_t PyramidLayout::known_rows(int level, std::int64_t base_rows) const noexcept {
  return base_rows >= image_.height ? size(level).height : base_rows >> level;
}

std::int64_t PyramidLayout::completed_rows(int level, std::int64_t base_tile_row) const noexcept {
  if (base_tile_row >= rows(0) - 1) return rows(level);
  return known_rows(level, (base_tile_row + 1) * tile_) / tile_;
}

std::int64_t PyramidLayout::position(int level, TileIndex index) const noexcept {
  // The row of tiles of level 0 that completes this one.
  const std::int64_t base = std::min(((index.row + 1) << level) - 1, rows(0) - 1);
  std::int64_t before = index.column + index.row * columns(level);
  for (int other = 0; other < levels_; ++other) {
    if (other == level) continue;
    const std::int64_t last = other < level ? base : base - 1;
    if (last >= 0) before += completed_rows(other, last) * columns(other);
  }
  return before;
}

}  // namespace slidestream
