#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace slidestream::report {

/// One combination of a sweep's settings.
struct SweepPoint {
  std::vector<std::string> values;  ///< of the keys, as they were written
  std::vector<double> seconds;      ///< of its runs; empty: none succeeded
  std::string note;                 ///< why there are none, where that is said
  bool base = false;                ///< what the others are compared with; it may lie off the grid

  double median() const;  ///< of `seconds`, which isn't empty
};

/// What a sweep measured.
struct SweepTable {
  std::vector<std::string> keys;  ///< "section.key"
  std::vector<SweepPoint> points;
};

/// Reads the text of a sweep.csv: columns with a dot in their name are keys, of which `swept` names those that count,
/// else all that vary do; `seconds` is what a run took, and where that is empty `reason` or `status` say why. Only rows
/// whose `phase` is "grid" or empty count: the others repeat single combinations.
/// \throws ConfigError when there is no key or no `seconds`.
SweepTable read_sweep(std::string_view text, std::string_view origin);

}  // namespace slidestream::report
