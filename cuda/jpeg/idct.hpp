#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"

/// \file
/// libjpeg's accurate integer inverse DCT (JDCT_ISLOW: Loeffler, Ligtenberg and Moschytz, 13-bit constants), one
/// dimension at a time.

namespace slidestream::cuda {

inline constexpr int dc_only_bound = 1 << 12;  ///< a DC coefficient from -bound to bound - 1 keeps pass 1 in range
inline constexpr int pass1_bias = 1 << 14;     ///< what `idct_columns` adds to its results
inline constexpr std::uint32_t pass1_range = ~((2U * pass1_bias << 11) - 1);  ///< see `idct_columns`

namespace detail {

/// Eight inputs that are `in_bias` too large become eight results, `out_bias` too large, times 2^shift. The biases cost
/// nothing: they go along in three-operand additions. Arithmetic is modulo 2^32.
template <int shift, int in_bias, int out_bias>
SLIDESTREAM_HOST_DEVICE void idct_butterflies(std::uint32_t (&v)[8]) {
  constexpr std::uint32_t b = in_bias;
  constexpr std::uint32_t round = (1U << (shift - 1)) + (static_cast<std::uint32_t>(out_bias) << shift);
  const std::uint32_t z1 = (v[2] + v[6] - 2 * b) * 4433U;
  const std::uint32_t t2 = z1 - v[6] * 15137U;  // 15137 b too small
  const std::uint32_t t3 = z1 + v[2] * 6270U;   // 6270 b too large
  const std::uint32_t t0 = (v[0] + v[4]) * 8192U + (round - 16384U * b);
  const std::uint32_t t1 = (v[0] - v[4]) * 8192U + round;
  const std::uint32_t t10 = t0 + t3 - 6270U * b;
  const std::uint32_t t13 = t0 - t3 + 6270U * b;
  const std::uint32_t t11 = t1 + t2 + 15137U * b;
  const std::uint32_t t12 = t1 - t2 - 15137U * b;
  const std::uint32_t z3 = v[7] + v[3] - 2 * b;
  const std::uint32_t z4 = v[5] + v[1] - 2 * b;
  const std::uint32_t z5 = (z3 + z4) * 9633U;
  const std::uint32_t q3 = z5 - z3 * 16069U;
  const std::uint32_t q4 = z5 - z4 * 3196U;
  const std::uint32_t q1 = 0U - (v[7] + v[1] - 2 * b) * 7373U;
  const std::uint32_t q2 = 0U - (v[5] + v[3] - 2 * b) * 20995U;
  const std::uint32_t o0 = v[7] * 2446U + (q1 + q3 - 2446U * b);
  const std::uint32_t o1 = v[5] * 16819U + (q2 + q4 - 16819U * b);
  const std::uint32_t o2 = v[3] * 25172U + (q2 + q3 - 25172U * b);
  const std::uint32_t o3 = v[1] * 12299U + (q1 + q4 - 12299U * b);
  v[0] = t10 + o3;
  v[7] = t10 - o3;
  v[1] = t11 + o2;
  v[6] = t11 - o2;
  v[2] = t12 + o1;
  v[5] = t12 - o1;
  v[3] = t13 + o0;
  v[4] = t13 - o0;
}

}  // namespace detail

/// Pass 1: a column of dequantised coefficients becomes values of pass 2, biased by `pass1_bias`. Bits of `pass1_range`
/// in the result mean that a value doesn't fit 15 bits and a sign: up to there libjpeg-turbo's vector code, which has
/// 16 bits, computes what its C code computes, and coefficients fit because the transform is orthogonal.
SLIDESTREAM_HOST_DEVICE std::uint32_t idct_columns(std::uint32_t (&v)[8]) {
  detail::idct_butterflies<11, 0, pass1_bias>(v);
  const std::uint32_t range = (v[0] | v[1] | v[2]) | (v[3] | v[4] | v[5]) | (v[6] | v[7]);
  for (int i = 0; i < 8; ++i) v[i] >>= 11;
  return range;
}

/// Pass 2: a row of pass 1's results becomes samples, not yet clamped to 0..255.
SLIDESTREAM_HOST_DEVICE void idct_rows(std::uint32_t (&v)[8]) {
  detail::idct_butterflies<18, pass1_bias, 128>(v);
  for (int i = 0; i < 8; ++i) v[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(v[i]) >> 18);
}

/// Every sample of a block whose other coefficients are zero; not yet clamped.
SLIDESTREAM_HOST_DEVICE std::int32_t dc_only_sample(std::int32_t dc) { return ((dc + 4) >> 3) + 128; }

}  // namespace slidestream::cuda
