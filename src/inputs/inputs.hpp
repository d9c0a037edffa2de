#pragma once

#include <filesystem>
#include <functional>
#include <slidestream/pipeline.hpp>
#include <string>
#include <vector>

#include "inputs/input_kind.hpp"

namespace slidestream {

/// `expand_inputs` for a run, of slides or volumes. Its folder of results holds maps and images, which look like
/// slides: the next start would take them for its own. Folders among the inputs don't give them, and a warning says how
/// many. A file that is named, or that a list names, is a slide wherever it lies. What lies beside the results is the
/// same input before and after they are there.
/// \param results  the folder of results, which needn't be there; empty: there is none
/// \throws ConfigError as `expand_inputs`
ExpandedInputs expand_inputs(const std::vector<std::string>& inputs, const std::filesystem::path& results,
                             InputKind kind = InputKind::slide);

/// Results that lie in a folder itself, which may also hold inputs.
struct ResultsAmongInputs {
  std::filesystem::path folder;                                      ///< which needn't be there
  std::function<bool(const std::filesystem::path& file)> is_result;  ///< called for files in it
};

/// `expand_inputs` for work without a ledger. Folders among the inputs don't give its results, and a warning says how
/// many. \throws ConfigError as `expand_inputs`
ExpandedInputs expand_inputs(const std::vector<std::string>& inputs, const ResultsAmongInputs& results, InputKind kind);

}  // namespace slidestream
