#include "tiling/window_areas.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <slidestream/stitch.hpp>
#include <vector>

#include "cuda/tiles/area.hpp"
#include "runtime/cuda/check.hpp"
#include "tiling/tile_walk.hpp"
#include "tiling/window_cut.hpp"

namespace slidestream {

using runtime::cuda::DeviceArena;

namespace {

constexpr std::size_t samples = 3;
/// Rectangles that are described at a time.
constexpr std::size_t most_areas = 4096;
constexpr std::size_t piece_bytes = most_areas * sizeof(cuda::AreaPiece);

}  // namespace

/// Windows whose pixels are to become larger ones, and how, as many as there is room for.
class WindowAreas::Batch {
 public:
  Batch(WindowAreas& areas, const WindowTask& task, const Decode& decode, const std::function<void()>& wait);

  /// Makes a window. What it returns, here and below: how many tiles the CPU decoded though the device was to.
  std::size_t add(const WindowTarget& target);
  /// Makes what was added, and forgets it.
  std::size_t flush();

 private:
  std::size_t add(const WindowTarget& target, const Rect& part);
  std::size_t make_room(std::size_t pieces, std::size_t bytes);
  void add_piece(const WindowTarget& target, const Rect& part, cuda::AreaPiece piece);
  std::int64_t width_of_source(std::int64_t columns) const;

  WindowAreas& areas_;
  const WindowTask& task_;
  const Decode& decode_;
  const std::function<void()>& wait_;
  Size whole_;  ///< the image, of the resolution
  std::int64_t factor_;
  std::int64_t columns_;  ///< that are made at a time
  std::int64_t rows_;
  std::int64_t width_;    ///< of what they are made from: pixels of the level, a multiple of 16
  std::size_t used_ = 0;  ///< of the memory for it, bytes
  std::vector<WindowTarget> sources_;
  std::vector<cuda::AreaPiece> pieces_;
};

WindowAreas::WindowAreas(std::size_t source_bytes, cudaStream_t stream)
    : stream_(stream),
      device_(device_bytes(source_bytes)),
      host_(piece_bytes),
      pinned_(host_.bytes()),
      sources_(device_.take(DeviceArena::aligned(source_bytes))),
      pieces_(device_.take(piece_bytes)) {}

std::size_t WindowAreas::device_bytes(std::size_t source_bytes) {
  return DeviceArena::aligned(source_bytes) + DeviceArena::aligned(piece_bytes);
}

std::size_t WindowAreas::run(const WindowTask& task, const Decode& decode, const std::function<void()>& wait) {
  Batch batch(*this, task, decode, wait);
  std::size_t patched = 0;
  for (const WindowTarget& target : task.windows) patched += batch.add(target);
  return patched + batch.flush();
}

WindowAreas::Batch::Batch(WindowAreas& areas, const WindowTask& task, const Decode& decode,
                          const std::function<void()>& wait)
    : areas_(areas),
      task_(task),
      decode_(decode),
      wait_(wait),
      whole_(task.resolution.size_of(task.slide->info().levels[task.resolution.level])),
      factor_(task.resolution.factor),
      columns_(task.windows.front().window.width) {
  const auto room = static_cast<std::int64_t>(areas.sources_.size());
  const auto height_of_source = [&](std::int64_t rows) { return size_on_level(task.resolution, {1, rows}).height; };
  // A pixel's area is 257 x 257 at most, for which there is always room.
  while (columns_ > 1 && width_of_source(columns_) * height_of_source(1) * std::int64_t{samples} > room) {
    columns_ = (columns_ + 1) / 2;
  }
  width_ = width_of_source(columns_);
  rows_ = task.windows.front().window.height;
  while (rows_ > 1 && width_ * height_of_source(rows_) * std::int64_t{samples} > room) rows_ = (rows_ + 1) / 2;
}

/// Rows of windows begin at multiples of 16 bytes, where they are put together fastest.
std::int64_t WindowAreas::Batch::width_of_source(std::int64_t columns) const {
  return (size_on_level(task_.resolution, {columns, 1}).width + 15) / 16 * 16;
}

std::size_t WindowAreas::Batch::add(const WindowTarget& target) {
  const Rect& window = target.window;
  const Rect inside = intersection(window, {0, 0, whole_.width, whole_.height});
  const std::array<Rect, 4> around = rects_around(window, inside);
  std::size_t patched = make_room(around.size(), 0);
  for (const Rect& beyond : around) {
    if (beyond.width > 0 && beyond.height > 0) add_piece(target, beyond, {});
  }
  for (std::int64_t y = inside.y; y < inside.bottom(); y += rows_) {
    for (std::int64_t x = inside.x; x < inside.right(); x += columns_) {
      patched += add(target, {x, y, std::min(columns_, inside.right() - x), std::min(rows_, inside.bottom() - y)});
    }
  }
  return patched;
}

std::size_t WindowAreas::Batch::add(const WindowTarget& target, const Rect& part) {
  const Rect source = AreaResampler::source_of(part, factor_);
  const std::size_t bytes = DeviceArena::aligned(static_cast<std::size_t>(width_ * source.height) * samples);
  const std::size_t patched = make_room(1, bytes);
  auto* const pixels = reinterpret_cast<std::uint8_t*>(areas_.sources_.data() + used_);
  used_ += bytes;
  sources_.push_back({{source.x, source.y, width_, source.height}, pixels});
  cuda::AreaPiece piece;
  piece.source = reinterpret_cast<std::uintptr_t>(pixels);
  piece.pitch = width_ * std::int64_t{samples};
  piece.source_x = static_cast<std::int32_t>(source.x);
  piece.source_y = static_cast<std::int32_t>(source.y);
  piece.x = static_cast<std::int32_t>(part.x);
  piece.y = static_cast<std::int32_t>(part.y);
  add_piece(target, part, piece);
  return patched;
}

void WindowAreas::Batch::add_piece(const WindowTarget& target, const Rect& part, cuda::AreaPiece piece) {
  const Rect& window = target.window;
  const bool planar = task_.layout == WindowLayout::planar;
  const std::int64_t pixel_bytes = planar ? 1 : samples;
  piece.out_pitch = window.width * pixel_bytes;
  piece.plane = planar ? window.width * window.height : 0;
  piece.out = reinterpret_cast<std::uintptr_t>(target.pixels) +
              static_cast<std::uintptr_t>((part.y - window.y) * piece.out_pitch + (part.x - window.x) * pixel_bytes);
  piece.width = static_cast<std::uint32_t>(part.width);
  piece.height = static_cast<std::uint32_t>(part.height);
  piece.fill = task_.fill;
  pieces_.push_back(piece);
}

std::size_t WindowAreas::Batch::make_room(std::size_t pieces, std::size_t bytes) {
  const bool has_room = used_ + bytes <= areas_.sources_.size() && pieces_.size() + pieces <= most_areas;
  return has_room ? 0 : flush();
}

std::size_t WindowAreas::Batch::flush() {
  WindowTask level = task_;
  level.resolution.factor = Resolution().factor;
  level.layout = WindowLayout::interleaved;
  level.windows = sources_;
  const std::size_t patched = decode_(level);
  const std::span<const cuda::AreaPiece> all = pieces_;
  std::memcpy(areas_.host_.bytes().data(), all.data(), all.size_bytes());
  const cudaStream_t stream = areas_.stream_;
  SLIDESTREAM_CUDA(cudaMemcpyAsync(areas_.pieces_.data(), areas_.host_.bytes().data(), all.size_bytes(),
                                   cudaMemcpyHostToDevice, stream));
  cuda::make_areas(reinterpret_cast<const cuda::AreaPiece*>(areas_.pieces_.data()), all.size(), factor_, stream);
  // The memory is used again.
  wait_();
  sources_.clear();
  pieces_.clear();
  used_ = 0;
  return patched;
}

}  // namespace slidestream
