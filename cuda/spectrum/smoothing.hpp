#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <slidestream/config.hpp>

#include "cuda/spectrum/smoothed_plane.hpp"
#include "cuda/spectrum/window_engine.hpp"
#include "spectrum/smoothing.hpp"

/// \file
/// The Gaussian as a pass of its own: 8-bit luminance in, float32 out.

namespace slidestream::cuda {

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
