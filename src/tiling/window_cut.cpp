#include "tiling/window_cut.hpp"

#include <algorithm>

#include "tiling/tile_walk.hpp"

namespace slidestream {

namespace {

constexpr std::size_t samples = 3;

cuda::WindowPiece piece_of(const WindowTarget& target, const Rect& part, std::uint8_t value) {
  cuda::WindowPiece piece;
  piece.window = reinterpret_cast<std::uintptr_t>(target.pixels);
  piece.x = static_cast<std::uint32_t>(part.x - target.window.x);
  piece.y = static_cast<std::uint32_t>(part.y - target.window.y);
  piece.width = static_cast<std::uint32_t>(part.width);
  piece.height = static_cast<std::uint32_t>(part.height);
  piece.fill = value;
  return piece;
}

}  // namespace

std::array<Rect, 4> rects_around(const Rect& window, const Rect& part) {
  const bool none = part.width <= 0 || part.height <= 0;
  const Rect inside = none ? Rect{window.x, window.y, 0, 0} : part;
  return {Rect{window.x, window.y, window.width, inside.y - window.y},
          Rect{window.x, inside.bottom(), window.width, window.bottom() - inside.bottom()},
          Rect{window.x, inside.y, inside.x - window.x, inside.height},
          Rect{inside.right(), inside.y, window.right() - inside.right(), inside.height}};
}

void WindowCut::cut(const Level& level, std::span<const WindowTarget> windows, std::size_t most_bytes) {
  level_ = &level;
  windows_ = windows;
  const Level& of = level;
  const Rect whole = {0, 0, of.width, of.height};
  Rect all;  // of the tiles
  const auto tiles_of = [&](const Rect& window) {
    const Rect inside = intersection(window, whole);
    if (inside.width <= 0 || inside.height <= 0) return Rect{};
    const std::int64_t x = inside.x / of.tile_width;
    const std::int64_t y = inside.y / of.tile_height;
    return Rect{x, y, (inside.right() - 1) / of.tile_width - x + 1, (inside.bottom() - 1) / of.tile_height - y + 1};
  };
  for (const WindowTarget& target : windows) {
    const Rect touched = tiles_of(target.window);
    if (touched.width > 0) all = hull(all, touched);
  }
  tiles_ = all;
  const auto cells = static_cast<std::size_t>(all.width * all.height);
  hulls_.assign(cells, Rect{});
  for (const WindowTarget& target : windows) {
    const Rect touched = tiles_of(target.window);
    for (std::int64_t y = touched.y; y < touched.bottom(); ++y) {
      for (std::int64_t x = touched.x; x < touched.right(); ++x) {
        const Rect tile = {x * of.tile_width, y * of.tile_height, of.tile_width, of.tile_height};
        Rect& wanted = hulls_[static_cast<std::size_t>((y - all.y) * all.width + x - all.x)];
        wanted = hull(wanted, intersection(intersection(target.window, whole), tile));
      }
    }
  }
  first_of_.assign(1, 0);
  parts_.clear();
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const Rect& wanted = hulls_[cell];
    const std::int64_t column = all.x + static_cast<std::int64_t>(cell) % all.width;
    const std::int64_t row = all.y + static_cast<std::int64_t>(cell) / all.width;
    const std::size_t pitch = (static_cast<std::size_t>(wanted.width) * samples + 15) / 16 * 16;
    // What is too large for the room of a step comes in several.
    const auto most_rows = pitch == 0 ? 1 : std::max<std::int64_t>(1, static_cast<std::int64_t>(most_bytes / pitch));
    for (std::int64_t y = wanted.y; y < wanted.bottom(); y += most_rows) {
      WantedPart part;
      part.tile = row * of.columns + column;
      part.part = {wanted.x, y, wanted.width, std::min(most_rows, wanted.bottom() - y)};
      part.pitch = pitch;
      parts_.push_back(part);
    }
    first_of_.push_back(parts_.size());
  }
}

void WindowCut::describe_beyond(std::uint8_t fill, std::vector<cuda::WindowPiece>& pieces) const {
  const Rect whole = {0, 0, level_->width, level_->height};
  for (const WindowTarget& target : windows_) {
    const Rect& window = target.window;
    const Rect inside = intersection(window, whole);
    if (inside == window) continue;
    for (const Rect& beyond : rects_around(window, inside)) {
      if (beyond.width > 0 && beyond.height > 0) pieces.push_back(piece_of(target, beyond, fill));
    }
  }
}

void WindowCut::describe(std::size_t begin, std::size_t end, std::vector<cuda::WindowPiece>& pieces) const {
  const Level& of = *level_;
  const Rect whole = {0, 0, of.width, of.height};
  for (const WindowTarget& target : windows_) {
    const Rect inside = intersection(target.window, whole);
    if (inside.width <= 0 || inside.height <= 0) continue;
    for (std::int64_t row = inside.y / of.tile_height; row * of.tile_height < inside.bottom(); ++row) {
      for (std::int64_t column = inside.x / of.tile_width; column * of.tile_width < inside.right(); ++column) {
        const auto cell = static_cast<std::size_t>((row - tiles_.y) * tiles_.width + column - tiles_.x);
        for (std::size_t i = std::max(begin, first_of_[cell]); i < std::min(end, first_of_[cell + 1]); ++i) {
          const Rect part = intersection(parts_[i].part, inside);
          if (part.width <= 0 || part.height <= 0) continue;
          cuda::WindowPiece piece = piece_of(target, part, 255);
          if (!parts_[i].is_white) {
            piece.source = parts_[i].at + static_cast<std::size_t>(part.y - parts_[i].part.y) * parts_[i].pitch +
                           static_cast<std::size_t>(part.x - parts_[i].part.x) * samples;
            piece.pitch = static_cast<std::uint32_t>(parts_[i].pitch);
          }
          pieces.push_back(piece);
        }
      }
    }
  }
}

}  // namespace slidestream
