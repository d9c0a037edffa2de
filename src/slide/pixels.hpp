#pragma once

#include <cstdint>
#include <slidestream/slide.hpp>

namespace slidestream {

/// RGB of `count` interleaved pixels of `samples` samples each: the first three for `rgb`, by `ycbcr_to_rgb` for
/// `ycbcr`, else the first sample three times, inverted for `grey_inverted`. Where there are fewer than three samples,
/// the colour is grey. Further samples are ignored.
void interleaved_to_rgb(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples,
                        Colour colour) noexcept;

/// Pixels of `format` by `interleaved_to_luminance` or `interleaved_to_rgb`.
void interleaved_to_pixels(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples, Colour colour,
                           const PixelFormat& format) noexcept;

}  // namespace slidestream
