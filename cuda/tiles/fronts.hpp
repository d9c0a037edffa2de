#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// \file
/// What tiles begin with, for a host that describes tiles whose bytes are in a device's memory alone.

namespace slidestream::cuda {

/// A tile's first bytes, among those that are gathered.
struct TileFront {
  std::uint64_t offset = 0;  ///< of the first, from the compressed bytes' base
  std::uint32_t bytes = 0;
  std::uint32_t unused = 0;
};

/// Copies the first bytes of `count` tiles side by side, those of tile i to `to + i * room`, on `stream`. All pointers
/// are device memory; no tile has more than `room` bytes. \throws CudaError.
void gather_fronts(std::byte* to, std::size_t room, const std::byte* compressed, const TileFront* fronts,
                   std::size_t count, cudaStream_t stream);

}  // namespace slidestream::cuda
