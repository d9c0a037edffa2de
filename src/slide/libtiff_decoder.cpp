#include "slide/libtiff_decoder.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <string>

#include "slide/luminance.hpp"
#include "slide/pixels.hpp"

namespace slidestream {
namespace {

/// Rows that the tile must hold: all, or at the slide's lower edge those inside.
std::int64_t needed_rows(const TileJob& job) { return job.demand.inside_height; }

std::size_t needed_bytes(const TileJob& job) { return least_uncompressed_bytes(job.demand, job.detail.samples); }

void write_interleaved(const TileJob& job, const std::byte* samples) {
  const std::int64_t pitch = job.level.tile_width * job.detail.samples;
  const std::int64_t end = std::min(job.from_y + job.out.height, needed_rows(job));
  for (std::int64_t y = job.from_y; y < end; ++y) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(samples) + y * pitch + job.from_x * job.detail.samples;
    interleaved_to_pixels(job.row(y), from, job.out.width, job.detail.samples, job.level.colour, job.out.format);
    if (std::uint8_t* to = job.luminance_row(y)) {
      interleaved_to_luminance(to, from, job.out.width, job.detail.samples, job.level.colour);
    }
  }
  whiten_beyond(job, job.level.tile_width, needed_rows(job));
}

/// A handle from the level's pool; it goes back when it has done its work, and is closed when that threw.
class Lease {
 public:
  Lease(const TileJob& job, std::uint64_t largest_allocation)
      : pool_(*job.slide.impl().pools[job.level_index]),
        handle_(pool_.take(job.slide.impl().file, job.detail.directory_offset, largest_allocation)) {}
  TiffFile& operator*() const noexcept { return *handle_; }
  void give_back() { pool_.give_back(std::move(handle_)); }

 private:
  TiffPool& pool_;
  std::unique_ptr<TiffFile> handle_;
};

}  // namespace

std::unique_ptr<TiffFile> TiffPool::take(const File& file, std::uint64_t directory_offset,
                                         std::uint64_t largest_allocation) {
  if (process_ == ::getpid()) {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<TiffFile> handle = std::move(free_.back());
      free_.pop_back();
      return handle;
    }
  }
  auto handle = std::make_unique<TiffFile>(file, largest_allocation);
  if (!handle->set_directory(directory_offset)) throw TileError("libtiff: " + handle->message());
  return handle;
}

void TiffPool::give_back(std::unique_ptr<TiffFile> handle) {
  if (process_ != ::getpid()) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(handle));
}

void decode_uncompressed(const TileJob& job, std::span<const std::byte> bytes) {
  if (bytes.size() < needed_bytes(job)) {
    throw TileError(std::to_string(bytes.size()) + " bytes of samples, expected " + std::to_string(needed_bytes(job)));
  }
  write_interleaved(job, bytes.data());
}

void LibtiffDecoder::decode(const TileJob& job, std::span<const std::byte> bytes) {
  const std::size_t size = needed_bytes(job);
  if (size > capacity_) {
    samples_ = std::make_unique_for_overwrite<std::byte[]>(size);
    capacity_ = size;
  }
  // The codecs hold a tile or two at most, besides tables of their own.
  const std::uint64_t tile_bytes =
      static_cast<std::uint64_t>(job.level.tile_width * job.level.tile_height * job.detail.samples);
  Lease handle(job, 4 * tile_bytes + (std::uint64_t{1} << 26));
  TiffFile& tiff = *handle;
  tiff.clear_message();
  // libtiff takes the input as writable to reverse bits, which it does for FillOrder 2 only.
  void* input = const_cast<std::byte*>(bytes.data());
  const int done =
      TIFFReadFromUserBuffer(tiff.get(), static_cast<std::uint32_t>(job.index), input,
                             static_cast<tmsize_t>(bytes.size()), samples_.get(), static_cast<tmsize_t>(size));
  if (done != 1) throw TileError("libtiff: " + tiff.message());
  handle.give_back();
  write_interleaved(job, samples_.get());
}

}  // namespace slidestream
