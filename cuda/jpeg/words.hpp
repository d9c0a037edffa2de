#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"

/// \file
/// Words of four bytes, for device and host.

namespace slidestream::cuda {

/// Bytes of `a` and `b` (4 to 7) by the selector's nibbles.
SLIDESTREAM_HOST_DEVICE std::uint32_t choose_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(a, b, selector);
#else
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t chosen = 0;
  for (int i = 0; i < 4; ++i) {
    chosen |= static_cast<std::uint32_t>(bytes >> (8 * (selector >> (4 * i) & 7U)) & 255U) << (8 * i);
  }
  return chosen;
#endif
}

/// `sum` + the lower 16 bits of `weights` times byte 2 `half` of `bytes` + the upper ones times the byte behind it.
template <int half>
SLIDESTREAM_HOST_DEVICE std::uint32_t add_weighted(std::uint32_t weights, std::uint32_t bytes, std::uint32_t sum) {
#if defined(__CUDA_ARCH__)
  return half == 0 ? __dp2a_lo(weights, bytes, sum) : __dp2a_hi(weights, bytes, sum);
#else
  bytes >>= 16 * half;
  return sum + (weights & 0xFFFFU) * (bytes & 255U) + (weights >> 16) * (bytes >> 8 & 255U);
#endif
}

/// Four values, clamped to bytes; `a` is the lowest.
SLIDESTREAM_HOST_DEVICE std::uint32_t clamp_and_pack(int a, int b, int c, int d) {
#if defined(__CUDA_ARCH__)
  std::uint32_t high;
  std::uint32_t all;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(d), "r"(c), "r"(0));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(b), "r"(a), "r"(high));
  return all;
#else
  const auto clamped = [](int v) { return static_cast<std::uint32_t>(v < 0 ? 0 : v > 255 ? 255 : v); };
  return clamped(a) | clamped(b) << 8 | clamped(c) << 16 | clamped(d) << 24;
#endif
}

}  // namespace slidestream::cuda
