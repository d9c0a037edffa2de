#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "volume/fragments.hpp"

/// \file
/// Which fragments a sample lies in. Samples beside each other along an axis mostly lie in the same ones: they are a
/// run. A fusion looks fragments up for each run of a row, not for each sample. `FragmentRuns` is something else: it
/// has networks compute fragments.
///
/// A vote and a mean own the runs of their grid. The thread that makes the fusion makes them, and nobody changes them
/// later. So all threads read them without a lock: those that put a mean's fragments, and those that take a vote's
/// planes. `check_fusion` makes runs for itself.

namespace slidestream::volume {

/// Samples along an axis from `begin` to before `end`. They lie in the same fragments: those from `first` to before
/// `last`, or in none where these are equal. It owns nothing.
struct AxisRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  /// Number of these fragments.
  std::uint64_t fragments() const noexcept { return static_cast<std::uint64_t>(last - first); }
};

/// All samples of an axis, in order. They are many, and runs at most twice as many as fragments.
std::vector<AxisRun> runs_of(const FragmentAxis& axis);

/// Runs along z, y, x. A voxel's fragments are all combinations of those of its three runs.
using GridRuns = std::array<std::vector<AxisRun>, 3>;

GridRuns runs_of(const FragmentGrid& grid);

/// The run of a sample. \param runs  all of an axis. \param sample  from 0 to before the axis's size
inline const AxisRun& run_at(const std::vector<AxisRun>& runs, std::int64_t sample) {
  return *std::ranges::upper_bound(runs, sample, {}, &AxisRun::end);
}

}  // namespace slidestream::volume
