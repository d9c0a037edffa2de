#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <slidestream/slide.hpp>

/// \file
/// Tiles that need no decoder, and those that are white: cropped and placed into a batch's planes.

namespace slidestream::cuda {

/// One rectangle of pixels to write.
struct PlacedTile {
  static constexpr std::uint64_t white = ~std::uint64_t{0};
  std::uint64_t source = white;   ///< byte of the rectangle's first sample in the batch's bytes; white: no samples
  std::uint64_t destination = 0;  ///< byte of its first pixel in the plane of luminance
  std::uint32_t width = 0;        ///< pixels
  std::uint32_t height = 0;
  std::uint64_t rgb_destination = 0;  ///< the same in the plane of RGB
};

/// How the samples of uncompressed tiles lie in memory.
struct SampleLayout {
  std::uint32_t row_bytes = 0;  ///< from a row of a tile to the next
  std::uint32_t samples = 1;    ///< of a pixel, interleaved; those beyond the colour's are ignored
  Colour colour = Colour::grey;
};

/// Writes `count` rectangles of luminance on `stream`. All pointers are device memory. Pixels are the CPU's
/// (`interleaved_to_luminance`). \throws CudaError.
void place_tiles(std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
                 std::size_t count, const SampleLayout& layout, cudaStream_t stream);

/// The same of interleaved RGB, `interleaved_to_rgb` on the CPU. A run that wants both calls both.
void place_rgb_tiles(std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
                     std::size_t count, const SampleLayout& layout, cudaStream_t stream);

}  // namespace slidestream::cuda
