#pragma once

#include <memory>

#include "cuda/spectrum/window_engine.hpp"

/// \file
/// The engines behind make_window_engine, one factory each.

namespace slidestream::cuda {

/// Smoothing, gather, cuFFT and binning, each a kernel: any window, stride, radius, value, bins.
std::unique_ptr<WindowEngine> make_cufft_window_engine(const AnalysisConfig& config);

/// Builds of the fused kernel.
enum class FusedBuild {
  automatic,  ///< the best for the device
  hopper,     ///< compute capability 9.x
  portable,   ///< compute capability 8.0 and up, within the limits of 8.6
};

/// Smoothing, and one kernel for the rest: window 256, stride 128, log1p_db, and bins that fit its shared memory.
/// \throws ConfigError for other configurations, and devices that can't run the build.
std::unique_ptr<WindowEngine> make_fused_window_engine(const AnalysisConfig& config,
                                                       FusedBuild build = FusedBuild::automatic);
/// Whether it takes the configuration on the current device. \throws CudaError.
bool fused_window_engine_takes(const AnalysisConfig& config);

}  // namespace slidestream::cuda
