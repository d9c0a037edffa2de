#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "image/gaussian_taps.hpp"
#include "image/views.hpp"

/// \file
/// Smoothing by a Gaussian, in integers.

namespace slidestream::operators {

/// From the centre outwards, in 1/65536: weight[i] = rint(65536 tap[i]) for i >= 1, and the centre takes what is
/// missing to 65536 in all: weight[0] + 2 (weight[1] + ...) = 65536.
using GaussianWeights = std::array<std::int32_t, max_smoothing_radius + 1>;

/// \throws std::invalid_argument unless radius is 0 to 16 and sigma above 0
GaussianWeights gaussian_weights(int radius, double sigma);

/// A separable Gaussian over (2 radius + 1)^2 pixels of 8-bit luminance or RGB, each channel for itself. Down and
/// across are summed exactly and rounded once, half up: (sum + 2^31) >> 32 in 64 bits. Beyond the image's edges:
/// mirrored without repeating the edge sample (numpy `reflect`). Any rectangle of an image gives the pixels that the
/// whole gives, to the bit. Host memory. Keeps rows between calls: one object a thread.
class Gaussian {
 public:
  /// \param radius pixels, 0 to 16 (0 copies)
  /// \param sigma standard deviation, pixels, above 0
  Gaussian(int radius, double sigma);

  /// Pixels that are needed around those that are made.
  Border border() const noexcept { return border_of(radius_); }

  /// \param out luminance or RGB
  /// \param in of the same format; holds `out.rect` with `border()` around it, as far as that lies inside the image
  /// \throws std::invalid_argument when the views don't fit
  void run(const HostView& out, const ConstHostView& in);

 private:
  void columns(const HostView& out, const ConstHostView& in, std::int64_t begin, std::int64_t end);

  int radius_;
  GaussianWeights weights_;
  std::vector<std::int32_t> pairs_;        ///< two 16-bit weights each, the first one below
  std::vector<const std::uint8_t*> rows_;  ///< around the one being made, above to below
  std::vector<std::int16_t> high_;         ///< of a row of sums over columns, in 1/65536: value >> 12
  std::vector<std::int16_t> low_;          ///< value & 4095
};

}  // namespace slidestream::operators
