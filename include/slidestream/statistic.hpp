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

/// \file
/// Statistics of windows besides the distribution, as data: what each is called, how many exact counters it takes, and
/// what these come to. Configuration keys, files of results, ledger, report and comparisons loop over this list.

namespace slidestream {

/// One number of a slide, or of all slides together.
struct Figure {
  std::string name;             ///< its column in slides.csv; no other statistic's has the same
  std::optional<double> value;  ///< nothing where no window counted
  bool is_count = false;        ///< a whole number
};

/// Numbers in a row, as many for every slide: real ones in `values`, or counts in `counts`.
struct Series {
  std::string name;  ///< its file is NAME.npy, a row a slide; no other statistic's has the same
  std::string unit;  ///< of the values; of counts what they count
  std::string axis;  ///< what the places stand for, with its unit
  double first = 0.0;
  double step = 1.0;           ///< entry i stands at first + i step; counts from there to the next entry
  std::vector<double> values;  ///< NaN where no window counted
  std::vector<std::uint64_t> counts;

  bool is_counts() const noexcept { return values.empty(); }
  std::size_t size() const noexcept { return is_counts() ? counts.size() : values.size(); }
};

/// What a statistic comes to.
struct Findings {
  std::vector<Figure> figures;
  std::vector<Series> series;
};

/// A statistic: what adds up over windows in whole numbers, and how that is read.
struct Statistic {
  std::string_view name;     ///< `analysis.NAME` turns it on
  std::string_view title;    ///< of its part of the report
  std::string_view comment;  ///< of that key: meaning, unit, default, memory consequence
  std::string_view section;  ///< of the configuration that decides it besides [analysis]; empty: none does
  /// Exact counters of a slide. They merge by addition.
  std::size_t (*counters)(const AnalysisConfig& config);
  /// Names and sizes are the same whatever the sums. \param counters its own, as many as that
  Findings (*findings)(const AnalysisConfig& config, const SpectrumSums& sums, std::span<const Int128> counters);
};

/// All that there are.
std::span<const Statistic> statistics();

/// A statistic that a configuration asks for, and where its counters begin in `SpectrumSums::counters`.
struct PlacedStatistic {
  const Statistic* statistic = nullptr;
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t all = 0;  ///< counters of all that are asked for
};

/// Those that a configuration asks for, one behind the other, in the order of `statistics`.
std::vector<PlacedStatistic> placed_statistics(const AnalysisConfig& config);
/// All their counters.
std::size_t statistic_counters(const AnalysisConfig& config);

/// Its counters; none where the sums have none.
std::span<const Int128> counters_of(const PlacedStatistic& placed, const SpectrumSums& sums);
/// What the counters of one of them come to. Sums without counters are those of no window.
Findings findings_of(const PlacedStatistic& placed, const AnalysisConfig& config, const SpectrumSums& sums);

/// Names of the files that a statistic leaves besides the others: each series' NAME.npy.
std::vector<std::string> files_of(const Statistic& statistic);
/// Those of all statistics.
std::vector<std::string> statistic_files();

}  // namespace slidestream
