#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// \file
/// Pixels as networks take them, on a device.

namespace slidestream::cuda {

/// Puts on `stream` the making of planes from tiles, all in device memory: a sample v of channel c becomes
/// table[256 c + v], to the bit. Allocates nothing.
/// \param planes  tiles x 3 x area, written. \param pixels  tiles x area x 3. \param table  3 x 256. \param area pixels
/// of a tile, below 2^31. \throws CudaError.
void enqueue_planes(float* planes, const std::uint8_t* pixels, const float* table, std::size_t area, std::size_t tiles,
                    cudaStream_t stream);
/// The same with the bits of half floats.
void enqueue_planes(std::uint16_t* planes, const std::uint8_t* pixels, const std::uint16_t* table, std::size_t area,
                    std::size_t tiles, cudaStream_t stream);

/// Puts on `stream` the making of floats from the bits of half floats, both in device memory. \throws CudaError.
void enqueue_widened(float* values, const std::uint16_t* halves, std::size_t count, cudaStream_t stream);

}  // namespace slidestream::cuda
