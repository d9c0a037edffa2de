#pragma once

#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>

namespace slidestream::cli {

/// Finds the slides of `input.slides`, without images that aren't whole and without this run's own results. Says what
/// is left out. \param to_folder  results go to `output.dir`. \throws ConfigError where no slide is left,
/// or none exists.
ExpandedInputs inputs_of_run(const Config& config, bool to_folder);

}  // namespace slidestream::cli
