#pragma once

#include <memory>

#include "spectrum/engine.hpp"

/// \file
/// The engines behind make_spectrum_engine, one factory each.

namespace slidestream {

/// The plain way: any window, stride, radius, value, bins.
std::unique_ptr<SpectrumEngine> make_fftw_engine(const AnalysisConfig& config);

}  // namespace slidestream
