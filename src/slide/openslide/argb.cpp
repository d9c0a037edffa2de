#include "slide/openslide/argb.hpp"

#include <algorithm>

namespace slidestream::openslide {

namespace {

/// Of samples that are multiplied by their alpha already.
std::uint8_t over(std::uint32_t sample, std::uint32_t alpha, std::uint32_t background) noexcept {
  return static_cast<std::uint8_t>(std::min<std::uint32_t>(255, sample + (background * (255 - alpha) + 127) / 255));
}

}  // namespace

void to_rgb(std::uint8_t* to, const std::uint32_t* from, std::int64_t count, const Background& background) noexcept {
  for (std::int64_t i = 0; i < count; ++i, to += 3) {
    const std::uint32_t pixel = from[i];
    const std::uint32_t alpha = pixel >> 24;
    if (alpha == 255) {
      to[0] = static_cast<std::uint8_t>(pixel >> 16);
      to[1] = static_cast<std::uint8_t>(pixel >> 8);
      to[2] = static_cast<std::uint8_t>(pixel);
    } else {
      to[0] = over(pixel >> 16 & 255, alpha, background.red);
      to[1] = over(pixel >> 8 & 255, alpha, background.green);
      to[2] = over(pixel & 255, alpha, background.blue);
    }
  }
}

}  // namespace slidestream::openslide
