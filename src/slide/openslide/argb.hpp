#pragma once

#include <cstdint>

/// \file
/// Pixels as OpenSlide gives them.

namespace slidestream::openslide {

/// What is there where a slide has no pixels.
struct Background {
  std::uint8_t red = 255;
  std::uint8_t green = 255;
  std::uint8_t blue = 255;
};

/// RGB of `count` pixels as the library gives them: words of alpha, red, green, blue, from the highest byte on. Samples
/// are multiplied by their alpha already.
void to_rgb(std::uint8_t* to, const std::uint32_t* from, std::int64_t count, const Background& background) noexcept;

}  // namespace slidestream::openslide
