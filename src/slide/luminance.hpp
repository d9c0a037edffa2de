#pragma once

#include <cstdint>
#include <slidestream/slide.hpp>

namespace slidestream {

/// Luminance of 8-bit RGB, rounded: the weights are ITU-R BT.601's times 65536.
constexpr std::uint8_t luminance(std::uint32_t red, std::uint32_t green, std::uint32_t blue) noexcept {
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

/// Luminance of `count` interleaved pixels of `samples` samples each: by the formula for `rgb`, else the first sample,
/// inverted for `grey_inverted`. Further samples are ignored.
void interleaved_to_luminance(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples,
                              Colour colour) noexcept;

}  // namespace slidestream
