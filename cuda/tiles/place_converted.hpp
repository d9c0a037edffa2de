#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/colour/colour_program.hpp"
#include "cuda/tiles/place.hpp"

/// \file
/// Tiles that need no decoder, as `place_tiles` has them, whose colours are converted on the way.

namespace slidestream::cuda {

/// Where pixels go.
struct ConvertedPlanes {
  std::uint8_t* rgb = nullptr;        ///< null: nobody wants it
  std::uint8_t* luminance = nullptr;  ///< of converted colours; null: nobody wants it
  std::ptrdiff_t rgb_pitch = 0;       ///< bytes from a row to the next
  std::ptrdiff_t luminance_pitch = 0;
};

/// Writes `count` rectangles on `stream`, white ones without a conversion. All pointers are device memory. Fast where
/// samples are red, green and blue, and rows begin at multiples of 4 bytes. \param colours  not none
/// \throws CudaError
void place_converted_tiles(const ConvertedPlanes& planes, const std::byte* bytes, const PlacedTile* tiles,
                           std::size_t count, const SampleLayout& layout, const DeviceColours& colours,
                           cudaStream_t stream);

}  // namespace slidestream::cuda
