#pragma once

#include <cstdint>

/// \file
/// Luminance of RGB, in integers: for decoders on the host and on a GPU.

namespace slidestream {

/// Luminance of 8-bit RGB, rounded: the weights are ITU-R BT.601's times 65536.
constexpr std::uint8_t luminance(std::uint32_t red, std::uint32_t green, std::uint32_t blue) noexcept {
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

}  // namespace slidestream
