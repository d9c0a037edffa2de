#pragma once

#include <array>
#include <cstdint>

/// \file
/// What both engines need to smooth alike: the Gaussian's taps and the mirror at the image's edges.

namespace slidestream {

constexpr int max_smoothing_radius = 16;

/// The Gaussian from its centre outwards: tap[i] weighs the neighbours at distance i, tap[0] + 2 (tap[1] + ...) = 1,
/// and taps beyond the radius are zero.
using GaussianTaps = std::array<double, max_smoothing_radius + 1>;
GaussianTaps gaussian_taps(int radius, double sigma);

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
