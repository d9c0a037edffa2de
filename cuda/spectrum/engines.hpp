#pragma once

#include <memory>

#include "cuda/spectrum/window_engine.hpp"

/// \file
/// The engines behind make_window_engine, one factory each.

namespace slidestream::cuda {

/// Smoothing, gather, cuFFT and binning, each a kernel: any window, stride, radius, value, bins.
std::unique_ptr<WindowEngine> make_cufft_window_engine(const AnalysisConfig& config);

}  // namespace slidestream::cuda
