#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "spectrum/engine.hpp"

/// \file
/// The analysis as its definition reads, in double precision: no vectors, no sharing of work between windows, no half
/// spectrum. What the engines and the pipeline are compared with.

namespace slidestream::test {

/// A whole luminance image.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;  ///< row by row

  std::uint8_t at(std::int64_t x, std::int64_t y) const { return pixels[static_cast<std::size_t>(y * width + x)]; }
};

/// Statistics of windows, with the moments of each.
struct ReferenceResult {
  std::int64_t columns = 0;  ///< windows across
  std::int64_t rows = 0;     ///< windows down
  std::vector<std::uint64_t> histogram;
  std::uint64_t values = 0;
  std::uint64_t clipped = 0;
  double mean = 0.0;
  double standard_deviation = 0.0;
  std::vector<double> radial;        ///< mean of the values over rings of |k|, 0 to N / 2
  std::vector<double> window_means;  ///< row by row
  std::vector<double> window_standard_deviations;
};

/// The DFT of a sequence of any length, unnormalised, forward.
std::vector<std::complex<double>> reference_dft(const std::vector<std::complex<double>>& samples);

/// The image smoothed as a whole, row by row.
std::vector<double> reference_smoothing(const Image& image, int radius, double sigma);

/// Every window of an image. An image smaller than a window gives none.
ReferenceResult reference_spectrum(const Image& image, const AnalysisConfig& config);

/// A whole image as the engines take it.
LuminancePlane whole_plane(const Image& image);

/// All windows of an image.
WindowBlock all_windows(const Image& image, const AnalysisConfig& config);

/// Smooth islands, edges and fine grain, the same for the same seed on every machine.
Image textured_image(std::int64_t width, std::int64_t height, std::uint64_t seed);

/// How far an engine's result may be off the reference (DESIGN, accuracy), with room for chance where values are few.
struct Tolerance {
  double moment = 1e-3;         ///< of the whole's mean and standard deviation, in the value's unit
  double window_moment = 1e-3;  ///< and of every window's
  double cumulative = 3e-4;
  double histogram = 1e-3;  ///< L1 distance
};

/// Another engine's result as what is expected.
ReferenceResult as_reference(const SpectrumSums& sums, const WindowMap& map);

/// What differs by more than is tolerated, one line; empty when all is well.
std::string difference(const SpectrumSums& sums, const WindowMap& map, const ReferenceResult& expected,
                       const Tolerance& tolerance = {});

}  // namespace slidestream::test
