#pragma once

#include <cstdint>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

namespace slidestream {

/// How two sets of windows differ: the second less the first, in the unit of the values.
struct Difference {
  double mean = 0.0;
  double standard_deviation = 0.0;
  double p05 = 0.0;
  double p50 = 0.0;
  double p95 = 0.0;
  double l1 = 0.0;           ///< of the histograms as shares: 0 the same, 2 nothing in common
  double wasserstein = 0.0;  ///< distance that shares must be moved, on average, to make one histogram the other's
  bool equal = false;        ///< to the bit

  /// The largest of those that have the values' unit.
  double largest() const noexcept;
};

/// Both have values and as many bins. \throws std::invalid_argument otherwise.
Difference difference_of(const SpectrumSums& first, const SpectrumSums& second, const AnalysisConfig& analysis);

/// Sum over bins of the difference of shares, and of the cumulated shares times the bin's width.
double l1_distance(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second);
double wasserstein_distance(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second,
                            double bin_width);

}  // namespace slidestream
