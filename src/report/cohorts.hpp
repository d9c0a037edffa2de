#pragma once

#include <string>
#include <unordered_map>

namespace slidestream::report {

/// What a manifest's column says of each slide.
class Cohorts {
 public:
  Cohorts() = default;
  /// Reads the column `column` of a CSV manifest. Slides are those of its column `path`, else of its first, relative to
  /// the manifest as everywhere.
  /// \throws ConfigError when the file can't be read, has no such column, or has a row with more fields than its header
  Cohorts(const std::string& manifest, const std::string& column);

  /// A slide's cohort by the file behind it; empty: the manifest doesn't name it, or says nothing of it.
  std::string of(const std::string& canonical) const;

 private:
  std::unordered_map<std::string, std::string> by_canonical_;
};

}  // namespace slidestream::report
