#pragma once

/// \file
/// Instructions that C++ has no words for, each a function. The tests have this header a second time, for the host.

namespace slidestream::cuda {

namespace {

/// The thread block's dynamic shared memory.
__device__ __forceinline__ unsigned char* block_memory() {
  extern __shared__ __align__(1024) unsigned char memory[];
  return memory;
}

/// The root with a relative error of at most 2^-23 (PTX ISA, sqrt.approx.f32), of a value that is no subnormal number.
__device__ __forceinline__ float approximate_root(float value) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(value));
  return root;
}

}  // namespace

}  // namespace slidestream::cuda
