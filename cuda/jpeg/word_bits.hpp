#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"

/// \file
/// Instructions on words that C++ has no words for, on the device and on the host. Shifts by 32 and more give zero.

namespace slidestream::cuda {

#if defined(__CUDA_ARCH__)
__device__ __forceinline__ std::uint32_t shift_left(std::uint32_t x, std::uint32_t by) {
  std::uint32_t result;
  asm("shl.b32 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(by));
  return result;
}
__device__ __forceinline__ std::uint32_t shift_right(std::uint32_t x, std::uint32_t by) {
  std::uint32_t result;
  asm("shr.u32 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(by));
  return result;
}
/// The lower word of `high`:`low` shifted right by `by` modulo 32.
__device__ __forceinline__ std::uint32_t funnel_right(std::uint32_t high, std::uint32_t low, std::uint32_t by) {
  return __funnelshift_r(low, high, by);
}
/// The upper word of `high`:`low` shifted left by `by` modulo 32.
__device__ __forceinline__ std::uint32_t funnel_left(std::uint32_t high, std::uint32_t low, std::uint32_t by) {
  return __funnelshift_l(low, high, by);
}
/// 2^32 - 1 where no bit is set.
__device__ __forceinline__ std::uint32_t first_set(std::uint32_t x) {
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(x)) - 1);
}
/// 32 where no bit is set.
__device__ __forceinline__ std::uint32_t leading_zeros(std::uint32_t x) {
  return static_cast<std::uint32_t>(__clz(static_cast<int>(x)));
}
#else
SLIDESTREAM_HOST_DEVICE std::uint32_t shift_left(std::uint32_t x, std::uint32_t by) { return by > 31 ? 0 : x << by; }
SLIDESTREAM_HOST_DEVICE std::uint32_t shift_right(std::uint32_t x, std::uint32_t by) { return by > 31 ? 0 : x >> by; }
SLIDESTREAM_HOST_DEVICE std::uint32_t funnel_right(std::uint32_t high, std::uint32_t low, std::uint32_t by) {
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> (by & 31U));
}
SLIDESTREAM_HOST_DEVICE std::uint32_t funnel_left(std::uint32_t high, std::uint32_t low, std::uint32_t by) {
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) << (by & 31U) >> 32);
}
SLIDESTREAM_HOST_DEVICE std::uint32_t first_set(std::uint32_t x) {
  return x == 0 ? 0xFFFFFFFFU : static_cast<std::uint32_t>(__builtin_ctz(x));
}
SLIDESTREAM_HOST_DEVICE std::uint32_t leading_zeros(std::uint32_t x) {
  return x == 0 ? 32 : static_cast<std::uint32_t>(__builtin_clz(x));
}
#endif

SLIDESTREAM_HOST_DEVICE std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

}  // namespace slidestream::cuda
