#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "spectrum/engine.hpp"
#include "spectrum/real_dft_2d.hpp"

/// \file
/// The engines behind make_spectrum_engine, one factory each.

namespace slidestream {

/// Mean and standard deviation of a window's `count` values into its cell of the map, if there is one.
inline void store_moments(float* cell, double value_sum, double square_sum, double count) {
  if (cell == nullptr) return;
  const double mean = value_sum / count;
  cell[0] = static_cast<float>(mean);
  cell[1] = static_cast<float>(std::sqrt(std::max(square_sum / count - mean * mean, 0.0)));
}

/// The plain way: any even window, any stride, radius, value, bins, through a transform of the window's size.
std::unique_ptr<SpectrumEngine> make_plain_engine(const AnalysisConfig& config, std::unique_ptr<RealDft2d> dft);

/// The fast way for windows of 16 to 1024 that are powers of two, at any stride and radius: log1p_db, up to some
/// thousand bins.
std::unique_ptr<SpectrumEngine> make_square_engine(const AnalysisConfig& config);
/// The same transforms for the plain engine, which takes any values and bins.
std::unique_ptr<RealDft2d> make_square_dft_2d(int n);
/// Whether there are such transforms of side `n` on this machine.
bool square_transforms_take(int n);

/// The fastest way: window 256, stride 128, radius up to 3, log1p_db, up to some thousand bins.
std::unique_ptr<SpectrumEngine> make_highway_engine(const AnalysisConfig& config);
bool highway_engine_takes(const AnalysisConfig& config);

}  // namespace slidestream
