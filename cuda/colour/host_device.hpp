#pragma once

#include <cmath>

/// \file
/// Marks what is compiled for the host and for the device from one source, and arithmetic that is the same on both.

#if defined(__CUDACC__)
#define SLIDESTREAM_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SLIDESTREAM_HOST_DEVICE inline
#endif

namespace slidestream::cuda {

// Products and sums are rounded each: no fused multiply-add, on neither side.
#if defined(__CUDA_ARCH__)
__device__ __forceinline__ float product(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float sum(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ int nearest(float a) { return __float2int_rn(a); }
#else
SLIDESTREAM_HOST_DEVICE float product(float a, float b) {
  const volatile float result = a * b;
  return result;
}
SLIDESTREAM_HOST_DEVICE float sum(float a, float b) { return a + b; }
SLIDESTREAM_HOST_DEVICE int nearest(float a) { return static_cast<int>(std::lrintf(a)); }
#endif

}  // namespace slidestream::cuda
