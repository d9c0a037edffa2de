#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// \file
/// Windows of a slide, put together from rectangles of decoded tiles.

namespace slidestream::cuda {

/// A rectangle of a window. Coordinates are pixels of the window.
struct WindowPiece {
  static constexpr std::uint64_t value = ~std::uint64_t{0};
  std::uint64_t window = 0;      ///< address of the window's first sample, device memory
  std::uint64_t source = value;  ///< byte of the rectangle's first pixel among the decoded ones; value: `fill`
  std::uint32_t pitch = 0;       ///< bytes from a decoded row to the next
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t fill = 0;  ///< of all samples, where there is no source
};

/// What all windows of a launch have in common.
struct WindowShape {
  std::uint32_t width = 0;  ///< pixels
  std::uint32_t height = 0;
  bool planar = false;  ///< a plane each of red, green and blue; otherwise the three lie side by side
};

/// Writes `count` rectangles on `stream`. `decoded` are interleaved RGB pixels; it and `pieces` are device memory.
/// Fast where rectangles begin at whole words of 4 bytes in the window and among the decoded pixels (16 bytes where
/// samples stay side by side); right everywhere. \throws CudaError.
void place_windows(const std::uint8_t* decoded, const WindowPiece* pieces, std::size_t count, const WindowShape& shape,
                   cudaStream_t stream);

}  // namespace slidestream::cuda
