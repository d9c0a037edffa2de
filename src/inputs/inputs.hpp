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
/// \param is_result  tells a result by its content: folders among the inputs give none of these, wherever they lie, and
/// a warning counts them. Called for the files that folders give; empty: none is told so
/// \throws ConfigError as `expand_inputs`
ExpandedInputs expand_inputs(const std::vector<std::string>& inputs, const std::filesystem::path& results,
                             InputKind kind = InputKind::slide,
                             std::function<bool(const std::filesystem::path& file)> is_result = {});

}  // namespace slidestream
