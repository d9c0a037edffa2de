#pragma once

#include <optional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>

#include "compare/distances.hpp"

namespace slidestream {

/// One slide that both runs have done.
struct SlidePair {
  std::string first;  ///< paths
  std::string second;
  std::optional<Difference> difference;         ///< of spectra; nothing unless both runs have windows of it
  std::vector<StatisticDifference> statistics;  ///< of those that both runs have
  std::vector<ValueDifference> values;          ///< operators' figures of it, of those that both runs have
  std::size_t files = 0;                        ///< made of it in both
  std::size_t equal_files = 0;                  ///< of them, to the byte

  /// Whether nothing differs, to the bit.
  bool equal() const noexcept;
  /// What was made of it and isn't the same in both: "sobel edges: 0123456789abcdef, then fedcba9876543210".
  std::vector<std::string> artifacts;
};

/// A slide that only one run has, or that one of them failed on.
struct Unmatched {
  std::string path;
  std::string why;
};

/// Two runs side by side.
struct Comparison {
  Config first;
  Config second;
  std::vector<std::string> settings;  ///< those that decide results and differ: "analysis.stride: 128, then 64"
  std::vector<SlidePair> slides;      ///< in the order of the first
  std::vector<Unmatched> unmatched;
  bool spectrum = false;                ///< whether both analysed spectra
  std::vector<std::string> only_first;  ///< what only the first run made: "spectrum", "maps", "tissue.share"
  std::vector<std::string> only_second;
  std::optional<Difference> corpus;  ///< of all slides of each; nothing when one has no windows
  std::vector<StatisticDifference> corpus_statistics;
  bool counted = false;  ///< whether there are windows in either, and both analysed spectra

  /// Whether everything was compared, nothing differs by more than `tolerance`, and each file that was made is the
  /// same.
  bool within(double tolerance) const;
};

/// Slides are the same when their path is; of the others, when their file's name is, where each run has it once.
/// \throws ConfigError when both analysed spectra and their bins, range or value differ; OutputError when a folder has
/// no results.
Comparison compare_runs(const std::string& first, const std::string& second);

}  // namespace slidestream
