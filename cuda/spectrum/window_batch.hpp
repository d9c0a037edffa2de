#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <slidestream/config.hpp>

#include "cuda/spectrum/smoothing.hpp"

/// \file
/// The steps around a batched transform: windows are gathered from the smoothed plane, and spectra become histogram,
/// clipped count and moments.

namespace slidestream::cuda {

/// A run of a block's windows, counted row by row.
struct WindowRange {
  WindowBlock block;
  std::int64_t first = 0;
  int count = 0;
};

/// Copies windows into `out`, [batch][window][window]. Those beyond `range.count` are filled with zeros.
void gather_windows(float* out, int batch, const SmoothedPlane& plane, const WindowRange& range, int window, int stride,
                    cudaStream_t stream);

/// Bins spectra and forms their moments.
class SpectrumBinning {
 public:
  /// For the current device.
  explicit SpectrumBinning(const AnalysisConfig& config);

  /// Doubles that `add` needs for `windows` windows, scratch.
  std::size_t partial_doubles(std::size_t windows) const noexcept { return 2 * windows * parts_; }

  /// Adds `windows` spectra, [windows][window][window / 2 + 1] complex numbers, to the histogram and the clipped count,
  /// and writes their moments (sum, sum of squares) to `moments`. A window's sums are formed in an order of their own.
  void add(std::uint64_t* histogram, std::uint64_t* clipped, double* moments, const float2* spectra, int windows,
           double* partials, cudaStream_t stream) const;
  /// The histogram and the clipped count alone, of the windows for which `only` (device memory, one byte a window;
  /// null: all) isn't 0. `partials` is overwritten.
  void count(std::uint64_t* histogram, std::uint64_t* clipped, const float2* spectra, int windows, double* partials,
             const std::uint8_t* only, cudaStream_t stream) const;

 private:
  ValueKind value_;
  float low_;
  float scale_;
  int bins_;
  int window_;
  unsigned parts_;  ///< of a window; a warp takes one
  int rows_per_part_;
  int histogram_copies_;  ///< in shared memory; 0: too many bins for it
  int most_blocks_;
};

}  // namespace slidestream::cuda
