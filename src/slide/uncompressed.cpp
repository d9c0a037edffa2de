#include "slide/uncompressed.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <string>

#include "slide/luminance.hpp"
#include "slide/pixels.hpp"

namespace slidestream {

std::size_t needed_sample_bytes(const TileJob& job) noexcept {
  return least_uncompressed_bytes(job.demand, job.coding.samples);
}

void write_interleaved(const TileJob& job, const std::byte* samples) {
  const int per_pixel = job.coding.samples;
  const std::int64_t pitch = job.level.tile_width * per_pixel;
  const std::int64_t end = std::min(job.from_y + job.out.height, job.demand.inside_height);
  for (std::int64_t y = job.from_y; y < end; ++y) {
    const auto* from =
        reinterpret_cast<const std::uint8_t*>(samples) + y * pitch + job.from_x * per_pixel + job.coding.first_sample;
    interleaved_to_pixels(job.row(y), from, job.out.width, per_pixel, job.level.colour, job.out.format);
    if (std::uint8_t* to = job.luminance_row(y)) {
      interleaved_to_luminance(to, from, job.out.width, per_pixel, job.level.colour);
    }
  }
  whiten_beyond(job, job.level.tile_width, job.demand.inside_height);
}

void decode_uncompressed(const TileJob& job, std::span<const std::byte> bytes) {
  const std::size_t needed = needed_sample_bytes(job);
  if (bytes.size() < needed) {
    throw TileError(std::to_string(bytes.size()) + " bytes of samples, expected " + std::to_string(needed));
  }
  write_interleaved(job, bytes.data());
}

}  // namespace slidestream
