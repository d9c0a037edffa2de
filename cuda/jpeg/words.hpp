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

/// `a` + `b` from 0 to the highest number of 24 bits.
SLIDESTREAM_HOST_DEVICE std::uint32_t limited_to_24_bits(std::uint32_t a, int b) {
  constexpr int highest = 0xFFFFFF;
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__viaddmin_s32_relu(static_cast<int>(a), b, highest));
#else
  const int sum = static_cast<int>(a) + b;
  return static_cast<std::uint32_t>(sum < 0 ? 0 : sum > highest ? highest : sum);
#endif
}

/// The third bytes of four words; `a`'s is the lowest.
SLIDESTREAM_HOST_DEVICE std::uint32_t third_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return choose_bytes(choose_bytes(a, b, 0x0062), choose_bytes(c, d, 0x0062), 0x5410);
}

}  // namespace slidestream::cuda
