#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

/// @file
/// The statistics of windows besides the distribution: their names, exact counters and figures. Configuration keys,
/// result files, ledger, report and comparisons loop over this list. All functions are thread-safe.

namespace slidestream {

/// One number of a slide, or of all slides together.
struct Figure {
  std::string name;             ///< its column in slides.csv, unique among all statistics
  std::optional<double> value;  ///< nothing if no window counted, or if the value isn't known
  bool is_count = false;        ///< a whole number
};

/// A row of numbers that has the same length for every slide: real numbers in `values`, or counts in `counts`.
struct Series {
  std::string name;  ///< its file is NAME.npy, with one row per slide; unique among all statistics
  std::string unit;  ///< of the values, or the things that are counted
  std::string axis;  ///< the quantity along the row, with its unit
  double first = 0.0;
  double step = 1.0;           ///< entry i is at first + i step; a count covers the range up to the next entry
  std::vector<double> values;  ///< NaN where no window counted
  std::vector<std::uint64_t> counts;

  /// Tells where the numbers are.
  /// @return True: in `counts`; false: in `values`.
  bool is_counts() const noexcept { return values.empty(); }
  /// How many numbers the series has.
  /// @return Size of `counts` or `values`.
  std::size_t size() const noexcept { return is_counts() ? counts.size() : values.size(); }
};

/// The results of a statistic.
struct Findings {
  std::vector<Figure> figures;
  std::vector<Series> series;
};

/// A statistic: integer counters that add up over windows, and the figures that are computed from them.
struct Statistic {
  std::string_view name;     ///< the key `analysis.NAME` turns it on
  std::string_view title;    ///< of its part of the report
  std::string_view comment;  ///< of that key: meaning, unit, default, memory consequence
  std::string_view section;  ///< a section besides [analysis] that changes its results; empty: none
  /// Number of its exact counters per slide. Counters of several slides merge by addition.
  std::size_t (*counters)(const AnalysisConfig& config);
  /// Computes its results from the sums and from its own counters. Names and sizes don't depend on the sums.
  Findings (*findings)(const AnalysisConfig& config, const SpectrumSums& sums, std::span<const Int128> counters);
  /// Whether GPUs can compute its counters. False: `pipeline.backend = "auto"` takes the CPU, and "cuda" is an error.
  bool computes_on_gpus = false;
};

/// All statistics.
/// @return The statistics, always in the same order. They live until the program ends.
std::span<const Statistic> statistics();

/// A statistic that a configuration asks for, and the place of its counters in `SpectrumSums::counters`.
struct PlacedStatistic {
  const Statistic* statistic = nullptr;
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t all = 0;  ///< counters of all statistics that the configuration asks for
};

/// Finds the statistics that a configuration asks for, and the places of their counters.
/// @param config  `statistics` has their names. Unknown names are ignored.
/// @return In the order of `statistics()`. Their counters follow each other.
std::vector<PlacedStatistic> placed_statistics(const AnalysisConfig& config);
/// Counts the counters of all statistics that a configuration asks for.
/// @param config  `statistics` has their names.
/// @return Size of `SpectrumSums::counters`; 0 without statistics.
std::size_t statistic_counters(const AnalysisConfig& config);

/// The counters of one statistic.
/// @param placed  The statistic, with its place.
/// @param sums  Sums of a slide or of several; the result refers to them.
/// @return Empty if the sums have no counters.
std::span<const Int128> counters_of(const PlacedStatistic& placed, const SpectrumSums& sums);
/// Computes the results of one statistic.
/// @param placed  The statistic, with its place.
/// @param config  The configuration of the run.
/// @param sums  Sums of a slide or of several. Missing counters count as zeros.
/// @return Figures and series. Names and sizes depend on `config` alone.
Findings findings_of(const PlacedStatistic& placed, const AnalysisConfig& config, const SpectrumSums& sums);

/// Names of the files that a statistic adds to the results.
/// @param statistic  One of `statistics()`.
/// @return NAME.npy per series.
std::vector<std::string> files_of(const Statistic& statistic);
/// Names of the files that all statistics add.
/// @return NAME.npy per series, in the order of `statistics()`.
std::vector<std::string> statistic_files();

}  // namespace slidestream
