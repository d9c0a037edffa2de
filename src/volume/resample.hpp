#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

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
  /// \throws Error without the file's name: a spacing isn't above 0 and finite, or gives too many samples
  Resampling(const Extent& scan, const Spacing& own, const Spacing& wanted);

  /// Samples of the grid that networks see: floor((W - 1) r + 1/2) + 1 of W, for r = own / wanted.
  const Extent& grid() const noexcept { return grid_; }

  /// Cuts a fragment, trilinearly: along x, then y, then z, as a (1 - f) + b f in float64, rounded to float32 once.
  /// Samples behind the scan's last one are as it. One of weight 0 doesn't count, be it NaN or infinite.
  /// \param to  samples of a fragment, written. \param scan  all its samples. \param fragments  of `grid`
  /// \param fill  beyond that
  void cut(std::span<float> to, std::span<const float> scan, const FragmentGrid& fragments, std::size_t fragment,
           float fill) const;

  /// The sample of `grid` that is nearest to one of the scan along an axis; of two the lower.
  std::int64_t nearest(std::size_t axis, std::int64_t sample) const noexcept {
    const double at = std::ceil(static_cast<double>(sample) * to_grid_[axis] - 0.5);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, grid_[axis] - 1);
  }

 private:
  /// Between two samples of the scan.
  struct Between {
    std::int64_t low = 0;
    std::int64_t high = 0;
    double of_low = 1.0;
    double of_high = 0.0;
  };

  /// Where a sample of `grid` lies along an axis.
  Between between(std::size_t axis, std::int64_t sample) const noexcept;

  Extent scan_;
  Extent grid_{};
  std::array<double, 3> to_grid_{};  ///< samples of `grid` for one of the scan
  std::array<double, 3> to_scan_{};
};

}  // namespace slidestream::volume
