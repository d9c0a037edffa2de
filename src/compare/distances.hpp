#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// How one figure or series of a statistic differs.
struct NamedDifference {
  std::string name;
  /// Of a figure the second less the first; of a series the largest such, by its size; of counts their Wasserstein
  /// distance along the axis. Nothing where one of them has none.
  std::optional<double> value;
  bool is_count = false;  ///< of windows or the like, not in the unit of values
};

/// A figure of an operator in both runs; NaN where a slide has none.
struct ValueDifference {
  std::string name;
  double first = 0.0;
  double second = 0.0;

  /// The second less the first; infinite where only one is a number.
  double difference() const noexcept;
};

/// How a statistic that both runs have differs.
struct StatisticDifference {
  std::string name;
  bool equal = false;  ///< to the bit
  std::vector<NamedDifference> parts;

  /// The largest of those that have the values' unit. Infinite where one run found something and the other nothing.
  double largest() const noexcept;
};

/// Those of the statistics that both configurations ask for and that have as many counters.
std::vector<StatisticDifference> statistic_differences(const AnalysisConfig& first_config, const SpectrumSums& first,
                                                       const AnalysisConfig& second_config, const SpectrumSums& second);

/// Both have values and as many bins. \throws std::invalid_argument otherwise.
Difference difference_of(const SpectrumSums& first, const SpectrumSums& second, const AnalysisConfig& analysis);

/// Sum over bins of the difference of shares, and of the cumulated shares times the bin's width.
double l1_distance(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second);
double wasserstein_distance(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second,
                            double bin_width);

}  // namespace slidestream
