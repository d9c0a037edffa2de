#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/statistics.hpp"

namespace slidestream::report {

/// One combination of a sweep's settings.
struct SweepPoint {
  std::vector<std::string> values;  ///< of the keys, as they were written
  std::vector<double> seconds;      ///< of its runs; empty: none succeeded
  std::vector<double> again;        ///< of runs after the choice, of the winner and the base
  std::string note;                 ///< why there are none, where that is said
  bool base = false;                ///< what the others are compared with; it may lie off the grid

  double median() const;  ///< of `seconds`, which isn't empty
};

/// What a sweep measured.
struct SweepTable {
  std::vector<std::string> keys;  ///< "section.key"
  std::vector<SweepPoint> points;
};

/// The combination that was chosen, against the base.
struct SweepVerdict {
  std::size_t winner = 0;  ///< place among the points
  TimeComparison times;
};

/// Reads the text of a sweep.csv: columns with a dot in their name are keys, of which `swept` names those that count,
/// else all that vary do; `seconds` is what a run took, and where that is empty `reason` or `status` say why. Rows
/// whose `phase` is neither "grid" nor empty repeat single combinations after the choice.
/// \throws ConfigError when there is no key or no `seconds`, and for more rows or combinations than a sweep has.
SweepTable read_sweep(std::string_view whole, std::string_view origin);

/// Nothing when no combination was run once more beside the base; of several the fastest.
std::optional<SweepVerdict> verdict_of(const SweepTable& table);

}  // namespace slidestream::report
