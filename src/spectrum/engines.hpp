#pragma once

#include <memory>

#include "spectrum/engine.hpp"

/// \file
/// The engines behind make_spectrum_engine, one factory each.

namespace slidestream {

/// The plain way: any window, stride, radius, value, bins.
std::unique_ptr<SpectrumEngine> make_fftw_engine(const AnalysisConfig& config);

/// The fast way: window 256, stride 128, radius up to 3, log1p_db, up to some thousand bins.
std::unique_ptr<SpectrumEngine> make_highway_engine(const AnalysisConfig& config);
bool highway_engine_takes(const AnalysisConfig& config);

}  // namespace slidestream
