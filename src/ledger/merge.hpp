#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "ledger/ledger.hpp"
#include "output/views.hpp"

namespace slidestream {

/// What a merge found.
struct MergeResult {
  Config config;                      ///< of the merged run
  Corpus corpus{0};                   ///< of all slides
  std::size_t twice = 0;              ///< slides that several folders have, with the same result
  std::vector<std::string> missing;   ///< paths of slides of the manifest that no folder has
  std::vector<std::string> warnings;  ///< one line each
};

/// Joins the ledgers of several output folders in `out`, and writes the files of results there. The order of `folders`
/// makes no difference to any byte of those.
/// \throws ConfigError when they can't be joined: other settings or versions, the same slide with different results;
/// OutputError when one can't be read or `out` can't be written.
MergeResult merge_ledgers(const std::vector<std::string>& folders, const std::string& out);

}  // namespace slidestream
