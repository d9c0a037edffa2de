#include "tiling/window_maker.hpp"

#include <algorithm>
#include <slidestream/stitch.hpp>

#include "tiling/window_pixels.hpp"

namespace slidestream {

namespace {

constexpr std::int64_t rgb_samples = 3;

/// The part of a tile that any window wants.
Rect bounds_of(const std::vector<WindowPart>& parts) {
  Rect all;
  for (const WindowPart& each : parts) all = hull(all, each.part);
  return all;
}

}  // namespace

WindowMaker::WindowMaker(const TileStreamOptions& options)
    : options_(options),
      memory_(std::make_shared<BatchMemory>(window_bytes() * static_cast<std::size_t>(options.batch), 0)) {}

std::size_t WindowMaker::window_bytes() const noexcept {
  return static_cast<std::size_t>(options_.windows.size.width * options_.windows.size.height * rgb_samples);
}

std::int64_t WindowMaker::allowed_batches(std::size_t batch_bytes) const {
  return static_cast<std::int64_t>((static_cast<std::size_t>(options_.memory_mib) << 20) / batch_bytes);
}

std::int64_t WindowMaker::chunk_windows() const {
  constexpr std::int64_t most_batches = 8;
  return std::clamp<std::int64_t>(allowed_batches(memory_->bytes()) / 4, 1, most_batches) * options_.batch;
}

std::shared_ptr<WindowMaker::Windows> WindowMaker::plan(WindowSegment segment) const {
  auto planned_windows = std::make_shared<Windows>();
  planned_windows->segment = std::move(segment);
  const WindowPlan& windows = planned_windows->plan();
  const Level& level = planned_windows->level();
  planned_windows->source = on_level(windows);
  planned_windows->source_size = size_on_level(windows.resolution, options_.windows.size);
  const Size& source = planned_windows->source_size;
  const auto together = [&](std::size_t rows) {
    return most_windows_together(level, planned_windows->source, source, rows);
  };
  std::size_t batch_bytes = memory_->bytes();
  if (!windows.resolution.is_level()) {
    planned_windows->memory =
        std::make_shared<BatchMemory>(static_cast<std::size_t>(source.width * source.height * rgb_samples), 0);
    batch_bytes += planned_windows->memory->bytes() * static_cast<std::size_t>(options_.batch);
  }
  std::size_t& rows = planned_windows->rows_at_a_time;
  rows = std::max<std::size_t>(windows.rows.size(), 1);
  if (planned_windows->segment.is_scattered) {
    planned_windows->batches_wanted = (chunk_windows() + options_.batch - 1) / options_.batch + 1;
  } else {
    // Rows of windows that have tiles in common stay together; where memory is short for that, fewer do.
    const std::int64_t allowed = allowed_batches(batch_bytes);
    const auto batches = [&](std::size_t of) { return (together(of) + options_.batch - 1) / options_.batch + 1; };
    while (rows > 1 && batches(rows) > allowed) rows /= 2;
    planned_windows->batches_wanted = batches(rows);
  }
  if (planned_windows->memory) planned_windows->memory->keep(static_cast<std::size_t>(together(rows)));
  return planned_windows;
}

/// Where a window's pixels of the level go.
std::uint8_t* WindowMaker::place_of(const Windows& windows, const Target& target) const noexcept {
  return windows.memory ? target.batch->sources[target.place]->data()
                        : target.batch->window(target.place, window_bytes());
}

void WindowMaker::make(const Job& job, TileReader& reader, std::vector<std::uint8_t>& scratch,
                       WhiteTiles& white) const {
  const Windows& windows = *job.windows;
  const Level& level = windows.level();
  const std::vector<WindowPart>& parts = job.work.parts;
  const Size& size = windows.source_size;
  const WindowLayout layout = windows.memory ? WindowLayout::interleaved : options_.layout;
  const std::int64_t tile_x = job.work.tile % level.columns * level.tile_width;
  const std::int64_t tile_y = job.work.tile / level.columns * level.tile_height;
  const auto read = [&](const Rect& rect, std::uint8_t* to, std::int64_t pitch) {
    const TileFate fate =
        reader.read(windows.slide(), windows.plan().resolution.level, job.work.tile, rect.x - tile_x, rect.y - tile_y,
                    {to, pitch, rect.width, rect.height, rgb_format}, options_.windows.on_bad_tile);
    white.add(windows.segment.place, job.work.tile, fate);
  };
  if (parts.size() == 1 && layout == WindowLayout::interleaved) {
    const auto& [window, whole, part] = parts.front();
    std::uint8_t* const to = place_of(windows, job.targets.front());
    read(part, to + ((part.y - whole.y) * size.width + (part.x - whole.x)) * rgb_samples, size.width * rgb_samples);
  } else {
    const Rect all = bounds_of(parts);
    scratch.resize(static_cast<std::size_t>(all.width * all.height * rgb_samples));
    read(all, scratch.data(), all.width * rgb_samples);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& [window, whole, part] = parts[i];
      std::uint8_t* const to = place_of(windows, job.targets[i]);
      for (std::int64_t y = part.y; y < part.bottom(); ++y) {
        copy_pixels(to, size, layout, part.x - whole.x, y - whole.y,
                    scratch.data() + ((y - all.y) * all.width + part.x - all.x) * rgb_samples, part.width);
      }
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Target& target = job.targets[i];
    if (target.batch->tiles_left[target.place].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    finish_window(windows, parts[i].window, target);
    target.batch->windows_made.fetch_add(1, std::memory_order_release);
  }
}

/// All tiles of a window are there: makes it of the resolution that is asked for, and fills what lies beyond the edge.
void WindowMaker::finish_window(const Windows& windows, std::size_t window, const Target& target) const {
  const Level& level = windows.level();
  const Resolution& resolution = windows.plan().resolution;
  const Size& size = options_.windows.size;
  const Size image = resolution.size_of(level);
  const auto row = std::ranges::upper_bound(windows.plan().rows, window, {}, &WindowRow::first) - 1;
  const std::int64_t x = windows.plan().columns[window];
  const Rect inside = {x, row->y, std::min(size.width, image.width - x), std::min(size.height, image.height - row->y)};
  std::uint8_t* const to = target.batch->window(target.place, window_bytes());
  if (windows.memory) {
    const std::shared_ptr<BatchMemory::Lease> source = std::move(target.batch->sources[target.place]);
    resample_window(to, size, options_.layout, inside, {level.width, level.height}, resolution.factor, source->data(),
                    windows.source_size.width * rgb_samples);
  }
  if (inside.width < size.width || inside.height < size.height) {
    fill_beyond(to, size, options_.layout, inside.width, inside.height, options_.fill);
  }
}

}  // namespace slidestream
