#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "volume/fragments.hpp"

/// \file
/// Between a scan's own grid and that of `volume.spacing`. Sample 0 of both lies at the same place, and sample i of the
/// other grid at i r samples of the first, for r = its spacing / the first one's. The quotient and the product are
/// float64, rounded once each.

namespace slidestream::volume {

/// Lengths along z, y, x, in millimetres.
using Spacing = std::array<double, 3>;

/// A scan as networks see it. Only the samples of a fragment are computed at a time. Thread-safe.
class Resampling {
 public:
  /// \param scan  samples. \param own  the scan's spacing. \param wanted  spacing of the grid that networks see
  /// \throws Error without the file's name: a spacing isn't above 0 and finite, or gives too many samples; so does the
  /// scan
  Resampling(const Extent& scan, const Spacing& own, const Spacing& wanted);

  /// Samples of the grid that networks see: floor((W - 1) r + 1/2) + 1 of W, for r = own / wanted.
  const Extent& grid() const noexcept { return grid_; }

  /// Cuts a fragment, trilinearly: along x, then y, then z, as a (1 - f) + b f in float64, rounded to float32 once.
  /// Samples behind the scan's last one are as it. One of weight 0 doesn't count, be it NaN or infinite.
  /// \param to  samples of a fragment, written. \param scan  all its samples. \param fragments  of `grid`
  /// \param fill  beyond that
  void cut(std::span<float> to, std::span<const float> scan, const FragmentGrid& fragments, std::size_t fragment,
           float fill) const;

  /// The sample of `grid` that is nearest to each of the scan along an axis; of two the lower.
  const std::vector<std::int64_t>& nearest(std::size_t axis) const noexcept { return nearest_[axis]; }

 private:
  /// Between two samples of the scan.
  struct Between {
    std::int64_t low = 0;
    std::int64_t high = 0;
    double of_low = 1.0;
    double of_high = 0.0;
  };

  Extent scan_;
  Extent grid_{};
  std::array<std::vector<Between>, 3> between_;  ///< by sample of `grid`
  std::array<std::vector<std::int64_t>, 3> nearest_;
};

}  // namespace slidestream::volume
