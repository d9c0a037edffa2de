#pragma once

#include <cstdint>
#include <string>

#include "spectrum/engine.hpp"
#include "support/reference.hpp"

/// \file
/// Running an engine of the CPU over an image, and what every engine's outcome is held to.

namespace slidestream::test {

struct Outcome {
  SpectrumSums sums;
  WindowMap map;
};

inline SpectrumSums empty_sums(const AnalysisConfig& config) {
  SpectrumSums sums;
  sums.histogram.assign(static_cast<std::size_t>(config.bins), 0);
  return sums;
}

inline Outcome empty_outcome(const Image& image, const AnalysisConfig& config) {
  const WindowBlock all = all_windows(image, config);
  Outcome outcome;
  outcome.sums = empty_sums(config);
  outcome.map.columns = all.columns;
  outcome.map.rows = all.rows;
  outcome.map.values.assign(static_cast<std::size_t>(all.columns * all.rows * 2), -1.0F);
  return outcome;
}

/// All windows in one go.
inline Outcome run_whole(const SpectrumEngine& engine, const Image& image, const AnalysisConfig& config) {
  Outcome outcome = empty_outcome(image, config);
  const auto workspace = engine.make_workspace();
  engine.run(outcome.sums, {outcome.map.values.data(), outcome.map.columns}, whole_plane(image),
             all_windows(image, config), *workspace);
  return outcome;
}

inline bool same_bits(const Outcome& a, const Outcome& b) {
  return a.sums.histogram == b.sums.histogram && a.sums.windows == b.sums.windows && a.sums.values == b.sums.values &&
         a.sums.clipped == b.sums.clipped && a.sums.sum == b.sums.sum &&
         a.sums.sum_of_squares == b.sums.sum_of_squares && a.map.values == b.map.values;
}

inline Tolerance tolerance_for(const AnalysisConfig& config, const ReferenceResult& expected) {
  Tolerance tolerance;
  // |F| spans many orders of magnitude: its moments are as good as float32 is.
  if (config.value == ValueKind::linear) {
    tolerance.moment = tolerance.window_moment = 1e-5 * (1.0 + expected.standard_deviation);
  }
  return tolerance;
}

/// What is held to for any image, such as those of stepped_images. float32 leaves an error e in each coefficient whose
/// mean square is that of the coefficients, at most (128 N)^2 as pixels less 128 are at most 128 (Parseval), times that
/// of the arithmetic's relative error, about 2^-24 here. A value moves by at most 20 / ln 10 |e|: everywhere by so much
/// where the exact coefficient is 0, whereas errors of either sign cancel where it is large. So 8.69 x 128 N x 2^-24 is
/// 6.6e-5 dB N; 5.5e-5 N was the worst seen. Smoothing leaves far less of what isn't 0:
/// 7e-4 dB was the worst seen on a CPU, 1.5e-3 on an H200.
inline Tolerance tolerance_for_zeros(const AnalysisConfig& config) {
  Tolerance tolerance;
  const bool smoothed = config.smoothing_radius > 0;
  tolerance.moment = tolerance.window_moment = smoothed ? 2e-3 : 8e-5 * config.window;
  tolerance.histogram = smoothed ? 0.02 : 4e-4 * config.window;
  tolerance.cumulative = tolerance.histogram / 2.0;
  return tolerance;
}

inline std::string described(const Image& image, const AnalysisConfig& config) {
  return std::to_string(image.width) + " x " + std::to_string(image.height) + ", window " +
         std::to_string(config.window) + ", stride " + std::to_string(config.stride) + ", radius " +
         std::to_string(config.smoothing_radius) + ", value " + std::to_string(static_cast<int>(config.value)) + ", " +
         std::to_string(config.bins) + " bins over " + std::to_string(config.range[0]) + " to " +
         std::to_string(config.range[1]);
}

}  // namespace slidestream::test
