#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// \file
/// Fragments of a volume: where they lie, and how they are cut. Axes are numbered as networks have them: 0 is the
/// slowest (z), 2 the fastest (x).

namespace slidestream::volume {

/// Samples along the axes z, y, x.
using Extent = std::array<std::int64_t, 3>;

constexpr std::int64_t count_of(const Extent& extent) noexcept { return extent[0] * extent[1] * extent[2]; }

/// Fragments along one axis. Where the volume is smaller than a fragment it is padded to the fragment's size, evenly:
/// one sample more behind it where the number is odd.
struct FragmentAxis {
  std::int64_t size = 1;      ///< samples of the volume
  std::int64_t fragment = 1;  ///< samples of a fragment
  std::int64_t count = 1;     ///< number of fragments

  /// First sample of fragment `i` in the volume: floor(i (W - T) / (n - 1) + 1/2) for W samples, n fragments of T.
  /// Negative where the volume is padded.
  constexpr std::int64_t begin(std::int64_t i) const noexcept {
    if (size <= fragment) return -((fragment - size) / 2);
    if (count == 1) return 0;
    return (2 * i * (size - fragment) + count - 1) / (2 * (count - 1));
  }
  /// Whether each sample is in a fragment.
  constexpr bool covers() const noexcept {
    if (size <= fragment) return true;
    if (count == 1) return false;
    for (std::int64_t i = 0; i + 1 < count; ++i) {
      if (begin(i + 1) - begin(i) > fragment) return false;
    }
    return true;
  }
};

/// The fragments of a volume, numbered in row-major order: the last axis is the fastest.
class FragmentGrid {
 public:
  /// \param volume, fragment  samples, from 1. \param grid  fragments along each axis, from 1
  FragmentGrid(const Extent& volume, const Extent& fragment, const Extent& grid);

  const FragmentAxis& axis(std::size_t i) const noexcept { return axes_[i]; }
  const Extent& volume() const noexcept { return volume_; }
  const Extent& fragment() const noexcept { return fragment_; }
  std::size_t count() const noexcept;
  bool covers() const noexcept { return axes_[0].covers() && axes_[1].covers() && axes_[2].covers(); }
  /// First sample of a fragment along each axis; negative where the volume is padded.
  Extent begin(std::size_t fragment) const noexcept;

  /// Cuts a fragment. \param to  samples of a fragment, written. \param volume  all samples. \param fill  beyond it
  void cut(std::span<float> to, std::span<const float> volume, std::size_t fragment, float fill) const;

 private:
  Extent volume_;
  Extent fragment_;
  std::array<FragmentAxis, 3> axes_;
};

/// Part of a fragment that lies in the volume, along one axis.
struct InsideRange {
  std::int64_t first = 0;  ///< first sample of the fragment that does
  std::int64_t count = 0;
};
constexpr InsideRange inside(std::int64_t begin, std::int64_t fragment, std::int64_t size) noexcept {
  const std::int64_t first = begin < 0 ? -begin : 0;
  const std::int64_t end = begin + fragment > size ? size - begin : fragment;
  return {first, end > first ? end - first : 0};
}

}  // namespace slidestream::volume
