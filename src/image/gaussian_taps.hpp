#pragma once

#include <array>

/// \file
/// The Gaussian that smoothing weighs neighbours with.

namespace slidestream {

constexpr int max_smoothing_radius = 16;

/// The Gaussian from its centre outwards: tap[i] weighs the neighbours at distance i, tap[0] + 2 (tap[1] + ...) = 1,
/// and taps beyond the radius are zero.
using GaussianTaps = std::array<double, max_smoothing_radius + 1>;
GaussianTaps gaussian_taps(int radius, double sigma);

}  // namespace slidestream
