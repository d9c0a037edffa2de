#include "tiling/region_reader.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <slidestream/image.hpp>
#include <slidestream/stitch.hpp>
#include <vector>

#include "runtime/forked.hpp"
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

/// What of `out`, which begins at a pixel of an image, lies inside the image.
Rect part_inside(const Size& image, std::int64_t first_column, std::int64_t first_row, const HostPixels& out) {
  Rect inside;
  inside.x = std::clamp<std::int64_t>(-first_column, 0, out.width);
  inside.y = std::clamp<std::int64_t>(-first_row, 0, out.height);
  inside.width = std::clamp<std::int64_t>(image.width - first_column, inside.x, out.width) - inside.x;
  inside.height = std::clamp<std::int64_t>(image.height - first_row, inside.y, out.height) - inside.y;
  return inside;
}

}  // namespace

void RegionReader::read(const Slide& slide, const Resolution& resolution, std::int64_t first_column,
                        std::int64_t first_row, const HostPixels& out, std::uint8_t fill, BadTilePolicy on_bad_tile,
                        const std::function<void()>& between) {
  if (resolution.is_level()) {
    return read(slide, resolution.level, first_column, first_row, out, fill, on_bad_tile, between);
  }
  const Level& level = slide.info().levels.at(resolution.level);
  const Rect inside = part_inside(resolution.size_of(level), first_column, first_row, out);
  if (inside != Rect{0, 0, out.width, out.height}) fill_around(out, inside, fill);
  if (inside.width <= 0 || inside.height <= 0) return;
  const Rect part = {first_column + inside.x, first_row + inside.y, inside.width, inside.height};
  const Rect source = AreaResampler::source_of(part, resolution.factor);
  AreaResampler resampler({level.width, level.height}, resolution.factor, part);
  const std::int64_t pitch = source.width * static_cast<std::int64_t>(out.format.pixel_bytes());
  const std::int64_t rows_at_a_time = (1023 / level.tile_height + 1) * level.tile_height;
  std::vector<std::uint8_t> rows;
  std::uint8_t* to = out.data + inside.y * out.pitch + inside.x * static_cast<std::int64_t>(out.format.pixel_bytes());
  for (std::int64_t y = source.y; y < source.bottom();) {
    const std::int64_t end = std::min((y / level.tile_height * level.tile_height) + rows_at_a_time, source.bottom());
    rows.resize(static_cast<std::size_t>((end - y) * pitch));
    read(slide, resolution.level, source.x, y, {rows.data(), pitch, source.width, end - y, out.format}, fill,
         on_bad_tile, between);
    if (between) between();
    for (std::int64_t i = 0; y < end; ++i, ++y) {
      if (resampler.add(to, rows.data() + i * pitch)) to += out.pitch;
    }
  }
}

void RegionReader::read(const Slide& slide, std::size_t level_index, std::int64_t first_column, std::int64_t first_row,
                        const HostPixels& out, std::uint8_t fill, BadTilePolicy on_bad_tile,
                        const std::function<void()>& between) {
  const Level& level = slide.info().levels.at(level_index);
  const Rect inside = part_inside({level.width, level.height}, first_column, first_row, out);
  if (inside != Rect{0, 0, out.width, out.height}) fill_around(out, inside, fill);
  if (inside.width <= 0 || inside.height <= 0) return;

  const Rect part = {first_column + inside.x, first_row + inside.y, inside.width, inside.height};
  const HostPixels to = {
      out.data + inside.y * out.pitch + inside.x * static_cast<std::int64_t>(out.format.pixel_bytes()), out.pitch,
      inside.width, inside.height, out.format};
  const std::int64_t column = part.x / level.tile_width;
  const std::int64_t row = part.y / level.tile_height;
  const Rect tiles = {column, row, (part.right() - 1) / level.tile_width - column + 1,
                      (part.bottom() - 1) / level.tile_height - row + 1};
  // Tenths of a second, even by one thread.
  constexpr std::int64_t most_pixels = std::int64_t{1} << 24;
  const std::int64_t row_pixels = tiles.width * level.tile_width * level.tile_height;
  const std::int64_t rows = between ? std::max<std::int64_t>(1, most_pixels / row_pixels) : tiles.height;
  for (std::int64_t y = tiles.y; y < tiles.bottom(); y += rows) {
    if (y > tiles.y) between();
    read_tiles(slide, level_index, {tiles.x, y, tiles.width, std::min(rows, tiles.bottom() - y)}, part, to,
               on_bad_tile);
  }
}

/// Reads what some tiles have of a part of the level, which `out` is.
void RegionReader::read_tiles(const Slide& slide, std::size_t level_index, const Rect& tiles, const Rect& part,
                              const HostPixels& out, BadTilePolicy on_bad_tile) {
  const Level& level = slide.info().levels[level_index];
  const auto part_of = [&](std::int64_t i) {
    return part_of_tile(level, tiles.x + i % tiles.width, tiles.y + i / tiles.width, part.x, part.y, out);
  };
  const auto read_tile = [&](TileReader& reader, std::int64_t i) {
    const TilePart tile = part_of(i);
    reader.read(slide, level_index, (tiles.y + i / tiles.width) * level.columns + tiles.x + i % tiles.width,
                tile.from_x, tile.from_y, tile.out, on_bad_tile);
  };
  if (runtime::forked_after_work()) {
    TileReader reader;
    for (std::int64_t i = 0; i < tiles.width * tiles.height; ++i) read_tile(reader, i);
    return;
  }
  const runtime::Work work;
  if (tiles.width * tiles.height == 1) return read_tile(impl_->readers.local(), 0);
  // What takes long comes first, so that threads end together.
  std::vector<std::int64_t> order(static_cast<std::size_t>(tiles.width * tiles.height));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::int64_t i) {
    const TilePart tile = part_of(i);
    return tile.out.width * tile.out.height;
  });
  std::atomic<std::size_t> next;
  next.store(0);
  const int workers = static_cast<int>(
      std::min<std::size_t>(order.size(), static_cast<std::size_t>(tbb::this_task_arena::max_concurrency())));
  tbb::parallel_for(
      0, workers,
      [&](int) {
        TileReader& reader = impl_->readers.local();
        next.load();
        const std::size_t count = order.size();
        for (std::size_t i; (i = next++) < count && !tbb::is_current_task_group_canceling();) {
          read_tile(reader, order[i]);
        }
      },
      tbb::simple_partitioner());
  // Loads and stores of the number are the order of memory that ThreadSanitizer sees; of parallel_for's it doesn't
  // know.
  next.load();
}

}  // namespace slidestream
