#pragma once

#include <cstdint>

/// \file
/// YCbCr to RGB as libjpeg has it, in integers: for decoders on the host and on a GPU.

namespace slidestream {

/// Red, green and blue, clamped to 0..255. `y`, `cb`, `cr` are samples of 8 bits. The weights are those of JFIF (ITU-R
/// BT.601, full range) times 65536; each sum is rounded as libjpeg's tables are (jdcolor.c, build_ycc_rgb_table).
struct Rgb {
  std::uint8_t red;
  std::uint8_t green;
  std::uint8_t blue;
};

constexpr Rgb ycbcr_to_rgb(int y, int cb, int cr) noexcept {
  cb -= 128;
  cr -= 128;
  const int red = y + ((91881 * cr + 32768) >> 16);
  const int green = y + ((-22554 * cb - 46802 * cr + 32768) >> 16);
  const int blue = y + ((116130 * cb + 32768) >> 16);
  const auto clamped = [](int v) { return static_cast<std::uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v); };
  return {clamped(red), clamped(green), clamped(blue)};
}

}  // namespace slidestream
