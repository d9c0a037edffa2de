#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <slidestream/image.hpp>

/// \file
/// Pixels that each stand for an area of a finer image: what `AreaResampler` makes, to the bit.

namespace slidestream::cuda {

/// A rectangle of pixels to make. Everything is interleaved RGB of 8 bits.
struct AreaPiece {
  std::uint64_t source = 0;    ///< address of the first pixel of the finer image that is held; 0: `fill` instead
  std::uint64_t out = 0;       ///< address of the rectangle's first pixel; of its red where colours are planes
  std::int64_t pitch = 0;      ///< bytes from a row to the next, of what is held
  std::int64_t out_pitch = 0;  ///< the same of what is made
  std::int64_t plane = 0;      ///< bytes from a plane to the next; 0: the three colours lie side by side
  std::int32_t source_x = 0;   ///< of the first pixel that is held, in the finer image
  std::int32_t source_y = 0;
  std::int32_t x = 0;  ///< of the first pixel to make, in the image that is made
  std::int32_t y = 0;
  std::uint32_t width = 0;  ///< pixels to make; what is held has all of their areas
  std::uint32_t height = 0;
  std::uint32_t fill = 0;
};

/// Makes `count` rectangles on `stream`. All pointers are device memory. \param factor  pixels of the finer image along
/// one that is made, times 65,536: 65,537 to 256 x 65,536. \throws CudaError.
void make_areas(const AreaPiece* pieces, std::size_t count, std::int64_t factor, cudaStream_t stream);

/// Makes all of `out.rect` on `stream`. `in` holds its areas, `AreaResampler::source_of` it; `out.image` is
/// `AreaResampler::size_of` `in.image`. \throws CudaError; std::invalid_argument when the views don't fit.
void make_areas(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
                std::int64_t factor, cudaStream_t stream);

}  // namespace slidestream::cuda
