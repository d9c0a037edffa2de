#pragma once

#include <cstdint>

#include "image/gaussian_taps.hpp"

/// \file
/// What both engines need to smooth alike: the Gaussian's taps and the mirror at the image's edges.

namespace slidestream {

/// The sample that stands for `i` in a line of `n`, mirrored without repeating the edge sample, as often as it takes.
constexpr std::int64_t mirrored(std::int64_t i, std::int64_t n) noexcept {
  while (i < 0 || i >= n) {
    if (n == 1) return 0;
    i = i < 0 ? -i : 2 * (n - 1) - i;
  }
  return i;
}

/// Taken off every pixel before the transform and put back into F(0,0) after: float32 is finer near zero.
constexpr int luminance_offset = 128;

}  // namespace slidestream
