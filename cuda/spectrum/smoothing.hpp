#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <slidestream/config.hpp>

#include "cuda/spectrum/window_engine.hpp"
#include "spectrum/smoothing.hpp"

/// \file
/// The Gaussian as a pass of its own: 8-bit luminance in, float32 out.

namespace slidestream::cuda {

/// Smoothed luminance less `luminance_offset`, in device memory: columns [x0, x0 + width) and rows [y0, y0 + height) of
/// the image.
struct SmoothedPlane {
  float* data = nullptr;     ///< aligned to 16 bytes; pixel (x0, y0)
  std::ptrdiff_t pitch = 0;  ///< floats from a row to the next, a multiple of 4; what lies beyond `width` is undefined
  std::int64_t x0 = 0;
  std::int64_t y0 = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;

  std::size_t floats() const noexcept { return static_cast<std::size_t>(height * pitch); }
};

/// The part of the image that a block of windows covers; `data` is null.
SmoothedPlane smoothed_plane_of(const WindowBlock& block, int window, int stride);

/// One-dimensional weights by distance from the centre, for each direction; zero beyond the radius.
struct SmoothingTaps {
  int radius = 0;
  float along_x[max_smoothing_radius + 1] = {};
  float along_y[max_smoothing_radius + 1] = {};
};

/// The configuration's Gaussian. `scale`, a power of two, multiplies what comes out, exactly.
SmoothingTaps smoothing_taps(const AnalysisConfig& config, float scale);

/// Fills `out` from `in`, mirrored at the image's edges. A pixel's value depends on its neighbourhood alone: not on the
/// plane it came in, the part asked for, or how `in` is aligned.
void smooth(const SmoothedPlane& out, const DevicePlane& in, const SmoothingTaps& taps, cudaStream_t stream);

}  // namespace slidestream::cuda
