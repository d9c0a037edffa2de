#pragma once

/// \file
/// Shared memory of kernels that convert colours. The tests have this header a second time, for the host.

namespace slidestream::cuda {

namespace {

/// The thread block's dynamic shared memory.
__device__ __forceinline__ unsigned char* block_memory() {
  extern __shared__ __align__(1024) unsigned char memory[];
  return memory;
}

/// Where something lies in shared memory.
__device__ __forceinline__ unsigned shared_place(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

/// A word of shared memory that stays as it is. Its place comes of one that `keep` gave.
__device__ __forceinline__ unsigned load_constant(unsigned place) {
  unsigned value;
  asm("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(place));
  return value;
}

/// A value that is made once, behind what is written to memory before.
__device__ __forceinline__ unsigned keep(unsigned value) {
  asm volatile("" : "+r"(value)::"memory");
  return value;
}

}  // namespace

}  // namespace slidestream::cuda
