#pragma once

#include <cstdint>

#include "codec/luminance.hpp"
#include "codec/tile_rule.hpp"
#include "codec/ycbcr.hpp"
#include "cuda/jpeg2000/wavelet.hpp"

/// \file
/// From the first three components, as the wavelet transforms leave them, to pixels: the inverse colour transforms
/// (ISO/IEC 15444-1, annex G) with the arithmetic of OpenJPEG to the bit, and what the slide says that components are.
/// One source for device and host.

namespace slidestream::cuda {

/// Three components of a pixel, in 8 bits.
struct ColourSamples {
  std::uint8_t first;
  std::uint8_t second;
  std::uint8_t third;
};

/// Undoes the codestream's own transform, if it has one, and rounds. The irreversible one's (G-12 to G-14) products and
/// sums are rounded each.
SLIDESTREAM_HOST_DEVICE ColourSamples undo_colour_transform(bool transformed, float first, float second, float third) {
  if (transformed) {
    const float red = sum(first, product(third, 1.402F));
    const float green = sum(sum(first, -product(second, 0.34413F)), -product(third, 0.71414F));
    const float blue = sum(first, product(second, 1.772F));
    first = red;
    second = green;
    third = blue;
  }
  return {to_sample(nearest(first)), to_sample(nearest(second)), to_sample(nearest(third))};
}

/// The same of the reversible one (G-6 to G-8).
SLIDESTREAM_HOST_DEVICE ColourSamples undo_colour_transform(bool transformed, int first, int second, int third) {
  if (transformed) {
    const int green = first - ((second + third) >> 2);
    const int red = third + green, blue = second + green;
    first = red;
    second = green;
    third = blue;
  }
  return {to_sample(first), to_sample(second), to_sample(third)};
}

/// RGB of three components, which the slide says are RGB or YCbCr.
SLIDESTREAM_HOST_DEVICE Rgb rgb_of(const ColourSamples& samples, PixelsOf pixels_of) {
  if (pixels_of == PixelsOf::ycbcr) return ycbcr_to_rgb(samples.first, samples.second, samples.third);
  return {samples.first, samples.second, samples.third};
}

/// The first component as a pixel by itself.
SLIDESTREAM_HOST_DEVICE std::uint8_t first_of(int rounded, PixelsOf pixels_of) {
  return static_cast<std::uint8_t>(to_sample(rounded) ^ (pixels_of == PixelsOf::first_inverted ? 255 : 0));
}

}  // namespace slidestream::cuda
