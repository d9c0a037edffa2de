#include "tiling/region_reader.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cstring>
#include <slidestream/image.hpp>

#include "slide/tile_reader.hpp"

namespace slidestream {

struct RegionReader::Impl {
  tbb::enumerable_thread_specific<TileReader> readers;
};

RegionReader::RegionReader() : impl_(std::make_unique<Impl>()) {}
RegionReader::~RegionReader() = default;

namespace {

/// Gives `fill` to what of `out` isn't `inside`, a rectangle of it.
void fill_around(const HostPixels& out, const Rect& inside, std::uint8_t fill) {
  const auto pixel_bytes = static_cast<std::int64_t>(out.format.pixel_bytes());
  for (std::int64_t y = 0; y < out.height; ++y) {
    std::uint8_t* const row = out.data + y * out.pitch;
    if (y < inside.y || y >= inside.bottom() || inside.width <= 0) {
      std::memset(row, fill, out.row_bytes());
      continue;
    }
    std::memset(row, fill, static_cast<std::size_t>(inside.x * pixel_bytes));
    std::memset(row + inside.right() * pixel_bytes, fill,
                static_cast<std::size_t>((out.width - inside.right()) * pixel_bytes));
  }
}

}  // namespace

void RegionReader::read(const Slide& slide, std::size_t level_index, std::int64_t first_column, std::int64_t first_row,
                        const HostPixels& out, std::uint8_t fill, BadTilePolicy on_bad_tile) {
  const Level& level = slide.info().levels.at(level_index);
  // What of `out` lies inside the level.
  Rect inside;
  inside.x = std::clamp<std::int64_t>(-first_column, 0, out.width);
  inside.y = std::clamp<std::int64_t>(-first_row, 0, out.height);
  inside.width = std::clamp<std::int64_t>(level.width - first_column, inside.x, out.width) - inside.x;
  inside.height = std::clamp<std::int64_t>(level.height - first_row, inside.y, out.height) - inside.y;
  if (inside != Rect{0, 0, out.width, out.height}) fill_around(out, inside, fill);
  if (inside.width <= 0 || inside.height <= 0) return;

  const std::int64_t left = first_column + inside.x;
  const std::int64_t top = first_row + inside.y;
  const HostPixels part = {
      out.data + inside.y * out.pitch + inside.x * static_cast<std::int64_t>(out.format.pixel_bytes()), out.pitch,
      inside.width, inside.height, out.format};
  const std::int64_t column = left / level.tile_width;
  const std::int64_t row = top / level.tile_height;
  const std::int64_t columns = (left + part.width - 1) / level.tile_width - column + 1;
  const std::int64_t rows = (top + part.height - 1) / level.tile_height - row + 1;
  const auto read_tile = [&](TileReader& reader, std::int64_t i) {
    const std::int64_t x = column + i % columns;
    const std::int64_t y = row + i / columns;
    const TilePart tile = part_of_tile(level, x, y, left, top, part);
    reader.read(slide, level_index, y * level.columns + x, tile.from_x, tile.from_y, tile.out, on_bad_tile);
  };
  if (columns * rows == 1) return read_tile(impl_->readers.local(), 0);
  tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, columns * rows, 1),
                    [&](const tbb::blocked_range<std::int64_t>& range) {
                      TileReader& reader = impl_->readers.local();
                      for (std::int64_t i = range.begin(); i < range.end(); ++i) read_tile(reader, i);
                    });
}

}  // namespace slidestream
