#pragma once

#include <cstdint>
#include <slidestream/slide.hpp>

#include "codec/luminance.hpp"

namespace slidestream {

/// Luminance of `count` interleaved pixels of `samples` samples each: by the formula for `rgb`, else the first sample,
/// inverted for `grey_inverted`. Further samples are ignored.
void interleaved_to_luminance(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples,
                              Colour colour) noexcept;

}  // namespace slidestream
