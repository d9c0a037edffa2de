#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <slidestream/config.hpp>

#include "cuda/spectrum/device_statistics.hpp"
#include "cuda/spectrum/scratch_layout.hpp"
#include "cuda/spectrum/smoothed_plane.hpp"

/// \file
/// What the fused window engine takes and the memory that it needs, in plain C++: so that the memory of a run can be
/// told for a GPU that isn't there.

namespace slidestream::cuda {

inline constexpr int fused_window = 256;
inline constexpr int fused_stride = 128;
inline constexpr int fused_rings = fused_window / 2 + 1;

/// Values are in powers of two here: log2(1 + |F|) = `value` / decibels_per_octave.
inline constexpr double decibels_per_octave = 6.0205999132796239;  // 20 log10(2)

/// No value of an 8-bit image is as large: |F| is at most 255 x 65536, just below 2^24.
inline constexpr double fused_most_octaves = 24.01;

/// Bins for all values that there can be, numbered from 0: those of the configuration and as many beyond its range as
/// it takes. So the kernel needs neither clamp nor test; what lies outside is folded in when all is counted.
struct FusedBins {
  int first = 0;  ///< what its number 0 is in the configuration
  int count = 0;
  int histograms = 1;  ///< one more where windows are split
  double per_octave = 0.0;
};

/// Nothing where the engine doesn't take the configuration on any device. On some there may be no room in shared memory
/// for so many bins.
inline std::optional<FusedBins> fused_bins(const AnalysisConfig& config) {
  if (config.window != fused_window || config.stride != fused_stride || config.value != ValueKind::log1p_db) return {};
  const double per_decibel = config.bins / (config.range[1] - config.range[0]);
  const double zero = -config.range[0] * per_decibel;  // where 0 dB falls
  const double most = decibels_per_octave * fused_most_octaves * per_decibel;
  constexpr double limit = 1 << 20;
  if (zero != std::floor(zero) || std::abs(zero) > limit || most > limit) return {};
  // One more on either side, for the last bit of an approximation.
  return FusedBins{static_cast<int>(zero) - 1, static_cast<int>(most) + 3, DeviceStatistics(config).split ? 2 : 1,
                   decibels_per_octave * per_decibel};
}

/// The engine's scratch for a block of windows. Over a null base it measures.
struct FusedScratch {
  FusedScratch(const WindowBlock& block, const FusedBins& bins, std::byte* base = nullptr) {
    if (block.columns <= 0 || block.rows <= 0) return;
    ScratchLayout layout(base);
    moment_count = 2 * static_cast<std::size_t>(block.columns) * static_cast<std::size_t>(block.rows);
    smoothed = smoothed_plane_of(block, fused_window, fused_stride);
    smoothed.data = layout.take<float>(smoothed.floats());
    histogram = layout.take<std::uint64_t>(static_cast<std::size_t>(bins.count * bins.histograms));
    moments = layout.take<std::int64_t>(moment_count);
    bytes = layout.bytes();
  }

  SmoothedPlane smoothed;
  std::uint64_t* histogram = nullptr;  ///< of all windows; behind it of those that are tissue
  std::int64_t* moments = nullptr;
  std::size_t moment_count = 0;
  std::size_t bytes = 0;
};

}  // namespace slidestream::cuda
