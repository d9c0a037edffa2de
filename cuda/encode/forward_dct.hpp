#pragma once

#include <cstdint>

#include "cuda/encode/words.hpp"

/// \file
/// libjpeg's accurate integer forward DCT (JDCT_ISLOW: Loeffler, Ligtenberg and Moschytz, 13-bit constants), as the
/// integer matrix that its butterflies amount to: their factors are whole numbers, so that sums of them are, too.

namespace slidestream::cuda {

/// A float `float_origin` + n, for whole numbers n of up to 22 bits, has the bits `bits_origin` + n. Adding
/// `float_origin` rounds to the nearest whole number.
inline constexpr float float_origin = 12582912.0F;  // 1.5 * 2^23
inline constexpr std::uint32_t bits_origin = 0x4B400000U;

/// The first pass: eight samples, the first in the lowest byte, become eight values, `bits_origin` + value, times 4.
/// All sums fit a float's 24 bits, so that nothing is rounded but the result; there the half of a unit that is added
/// makes ties go up, as libjpeg's shifts have it.
SLIDESTREAM_HOST_DEVICE void forward_dct_row(const WordPair& samples, std::uint32_t* values) {
  float x[8];
  SLIDESTREAM_UNROLL
  for (std::uint32_t i = 0; i < 8; ++i) {  // 2^15 + sample
    x[i] = as_float(choose_bytes(i < 4 ? samples.first : samples.second, 0x47000000U, 0x7404U | (i & 3U) << 4));
  }
  const float t0 = x[0] + x[7];
  const float t7 = x[0] - x[7];
  const float t1 = x[1] + x[6];
  const float t6 = x[1] - x[6];
  const float t2 = x[2] + x[5];
  const float t5 = x[2] - x[5];
  const float t3 = x[3] + x[4];
  const float t4 = x[3] - x[4];
  const float a = t0 + t3;
  const float d = t0 - t3;
  const float b = t1 + t2;
  const float c = t1 - t2;
  constexpr float unit = 1.0F / 2048;
  constexpr float half = 1.0F / 4096;
  constexpr float level = 8 * 32768.0F + 8 * 128.0F;  // what the samples are too large by
  values[0] = as_bits(fused(a + b, 4.0F, float_origin - 4 * level));
  values[4] = as_bits(fused(a - b, 4.0F, float_origin));
  values[2] = as_bits(fused(d, 10703 * unit, fused(c, 4433 * unit, half)) + float_origin);
  values[6] = as_bits(fused(d, 4433 * unit, fused(c, -10704 * unit, half)) + float_origin);
  values[7] =
      as_bits(fused(t7, 2260 * unit, fused(t6, -6436 * unit, fused(t5, 9633 * unit, fused(t4, -11363 * unit, half)))) +
              float_origin);
  values[5] =
      as_bits(fused(t7, 6437 * unit, fused(t6, -11362 * unit, fused(t5, 2261 * unit, fused(t4, 9633 * unit, half)))) +
              float_origin);
  values[3] =
      as_bits(fused(t7, 9633 * unit, fused(t6, -2259 * unit, fused(t5, -11362 * unit, fused(t4, -6436 * unit, half)))) +
              float_origin);
  values[1] =
      as_bits(fused(t7, 11363 * unit, fused(t6, 9633 * unit, fused(t5, 6437 * unit, fused(t4, 2260 * unit, half)))) +
              float_origin);
}

/// The second pass, over values of the first that lie 8 apart. They become coefficients times 8, without any origin.
/// Arithmetic is modulo 2^32.
SLIDESTREAM_HOST_DEVICE void forward_dct_column(std::uint32_t* values) {
  const std::uint32_t t0 = values[0] + values[56] - 2 * bits_origin;
  const std::uint32_t t7 = values[0] - values[56];
  const std::uint32_t t1 = values[8] + values[48] - 2 * bits_origin;
  const std::uint32_t t6 = values[8] - values[48];
  const std::uint32_t t2 = values[16] + values[40] - 2 * bits_origin;
  const std::uint32_t t5 = values[16] - values[40];
  const std::uint32_t t3 = values[24] + values[32] - 2 * bits_origin;
  const std::uint32_t t4 = values[24] - values[32];
  const std::uint32_t a = t0 + t3 + 2;
  const std::uint32_t d = t0 - t3;
  const std::uint32_t b = t1 + t2;
  const std::uint32_t c = t1 - t2;
  constexpr std::uint32_t half = 1U << 14;
  const auto shifted = [](std::uint32_t value, int count) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(value) >> count);
  };
  values[0] = shifted(a + b, 2);
  values[32] = shifted(a - b, 2);
  values[16] = shifted(d * 10703U + (c * 4433U + half), 15);
  values[48] = shifted(d * 4433U + (half - c * 10704U), 15);
  values[56] = shifted(t7 * 2260U + (t5 * 9633U + (half - t4 * 11363U) - t6 * 6436U), 15);
  values[40] = shifted(t7 * 6437U + (t5 * 2261U + (t4 * 9633U + half) - t6 * 11362U), 15);
  values[24] = shifted(t7 * 9633U + (half - t4 * 6436U - t5 * 11362U - t6 * 2259U), 15);
  values[8] = shifted(t7 * 11363U + (t6 * 9633U + (t5 * 6437U + (t4 * 2260U + half))), 15);
}

}  // namespace slidestream::cuda
