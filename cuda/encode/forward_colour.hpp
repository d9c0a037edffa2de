#pragma once

#include <cstdint>

#include "cuda/encode/words.hpp"

/// \file
/// RGB to YCbCr and the means of 2 x 2 samples of Cb and Cr, as libjpeg has them (jccolor.c: factors times 65536;
/// jcsample.c: h2v2_downsample, whose rounding alternates from column to column).

namespace slidestream::cuda {

/// Four pixels: Y, -1 - Cb, -1 - Cr, each with 16 bits of fraction.
/// Cb and Cr are negated because their factor of 0.5, 32768, has no positive value of 16 bits.
struct FourPixels {
  std::uint32_t y[4];
  std::int32_t blue[4];
  std::int32_t red[4];
};

/// From four interleaved pixels: R G B R, G B R G, B R G B. Products take two factors and two bytes at once.
SLIDESTREAM_HOST_DEVICE FourPixels convert_four(std::uint32_t w0, std::uint32_t w1, std::uint32_t w2) {
  const auto factors = [](std::uint32_t low, std::uint32_t high) { return high << 16 | low; };
  FourPixels made;
  {
    const std::uint32_t rg = factors(19595, 38470);
    const std::uint32_t b0 = factors(7471, 0);
    const std::uint32_t zr = factors(0, 19595);
    const std::uint32_t gb = factors(38470, 7471);
    constexpr std::uint32_t half = 32768;
    made.y[0] = dot_high(b0, w0, dot_low(rg, w0, half));
    made.y[1] = dot_low(gb, w1, dot_high(zr, w0, half));
    made.y[2] = dot_low(b0, w2, dot_high(rg, w1, half));
    made.y[3] = dot_high(gb, w2, dot_low(zr, w2, half));
  }
  // libjpeg's sum has an offset of 128 and one less than a half.
  constexpr std::int32_t offset = -((128 << 16) + 32767) - 1;
  const auto negated = [&](std::uint32_t r, std::uint32_t g, std::uint32_t b, std::int32_t(&to)[4]) {
    const std::uint32_t rg = factors(r, g);
    const std::uint32_t b0 = factors(b, 0);
    const std::uint32_t zr = factors(0, r);
    const std::uint32_t gb = factors(g, b);
    to[0] = signed_dot_high(b0, w0, signed_dot_low(rg, w0, offset));
    to[1] = signed_dot_low(gb, w1, signed_dot_high(zr, w0, offset));
    to[2] = signed_dot_low(b0, w2, signed_dot_high(rg, w1, offset));
    to[3] = signed_dot_high(gb, w2, signed_dot_low(zr, w2, offset));
  };
  negated(11059, 21709, 32768, made.blue);  // 32768: -32768 in 16 bits
  negated(32768, 27439, 5329, made.red);
  return made;
}

/// The bytes of Y.
SLIDESTREAM_HOST_DEVICE std::uint32_t luminance_bytes(const FourPixels& pixels) {
  return choose_bytes(choose_bytes(pixels.y[0], pixels.y[1], 0x0062), choose_bytes(pixels.y[2], pixels.y[3], 0x0062),
                      0x5410);
}

/// Two samples, in the lowest bytes, of 4 x 2 that are negated: (a + b + c + d + 1) >> 2 of the first 2 x 2, + 2 of the
/// second.
SLIDESTREAM_HOST_DEVICE std::uint32_t downsampled(const std::int32_t (&upper)[4], const std::int32_t (&lower)[4]) {
  const std::int32_t first = (upper[0] >> 16) + (upper[1] >> 16) + (lower[0] >> 16) + (lower[1] >> 16);
  const std::int32_t second = (upper[2] >> 16) + (upper[3] >> 16) + (lower[2] >> 16) + (lower[3] >> 16);
  return static_cast<std::uint32_t>((-3 - first) >> 2) | static_cast<std::uint32_t>((-2 - second) >> 2) << 8;
}

/// Two samples, in the lowest bytes, of 4 that are negated: (a + b) >> 1 of the first two, (a + b + 1) >> 1 of the
/// second (jcsample.c: h2v1_downsample).
SLIDESTREAM_HOST_DEVICE std::uint32_t halved(const std::int32_t (&row)[4]) {
  const std::int32_t first = (row[0] >> 16) + (row[1] >> 16);
  const std::int32_t second = (row[2] >> 16) + (row[3] >> 16);
  return static_cast<std::uint32_t>((-2 - first) >> 1) | static_cast<std::uint32_t>((-1 - second) >> 1) << 8;
}

/// The bytes of four samples that are negated.
SLIDESTREAM_HOST_DEVICE std::uint32_t chrominance_bytes(const std::int32_t (&row)[4]) {
  std::uint32_t bytes = 0;
  SLIDESTREAM_UNROLL
  for (int i = 0; i < 4; ++i) bytes |= static_cast<std::uint32_t>(-1 - (row[i] >> 16)) << 8 * i;
  return bytes;
}

}  // namespace slidestream::cuda
