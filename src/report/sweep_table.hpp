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

  double median() const;  ///< of `seconds`, which isn't empty
};

/// What a sweep measured.
struct SweepTable {
  std::vector<std::string> keys;  ///< "section.key"
  std::vector<SweepPoint> points;
};

/// Reads the text of a sweep.csv: columns with a dot in their name are keys, `seconds` is what a run took, and where
/// that is empty `status` or `error` say why. Rows whose column `warm_up` is anything but empty, 0, no or false are
/// left out. \throws ConfigError when there is no key or no `seconds`.
SweepTable read_sweep(std::string_view text, std::string_view origin);

}  // namespace slidestream::report
