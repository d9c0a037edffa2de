#pragma once

#include <cstdint>

/// \file
/// What threads of a block or of a warp do together. tests/cuda/emulator has a header of the same name that does it on
/// the host.

namespace slidestream::cuda {
namespace {

extern __shared__ __align__(16) unsigned char dynamic_shared_memory[];

/// The block's shared memory, as much as the launch asked for; aligned to 16 bytes.
__device__ __forceinline__ unsigned char* block_memory() { return dynamic_shared_memory; }

/// The sum of the values of the warp's lanes up to this one.
__device__ __forceinline__ std::uint32_t sum_up_to_lane(std::uint32_t value) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const std::uint32_t below = __shfl_up_sync(~0U, value, distance);
    if (lane >= distance) value += below;
  }
  return value;
}

__device__ __forceinline__ std::uint32_t sum_of_lanes(std::uint32_t value) { return __reduce_add_sync(~0U, value); }

/// Of the lane before; of the first lane its own.
__device__ __forceinline__ std::uint32_t lane_below(std::uint32_t value) { return __shfl_up_sync(~0U, value, 1); }
__device__ __forceinline__ std::uint32_t last_lane(std::uint32_t value) { return __shfl_sync(~0U, value, 31); }
__device__ __forceinline__ bool any_lane(bool value) { return __any_sync(~0U, value) != 0; }

}  // namespace
}  // namespace slidestream::cuda
