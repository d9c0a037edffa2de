#pragma once

#include <filesystem>
#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>
#include <vector>

#include "cli/run_options.hpp"

/// \file
/// What a run reads is never what it writes.

namespace slidestream::cli {

/// Refuses a run that would replace a file that it reads, under whatever name, or whose trace or metrics are to have
/// the name of another file of its results. Holds with `--overwrite`, too. \throws ConfigError that names both
void check_run_targets(const Config& config, const ExpandedInputs& inputs, const RunOptions& options);

/// The same of work without a folder for results. \param files  that it is going to write \throws ConfigError
void check_targets(const std::vector<std::filesystem::path>& files, const std::vector<std::filesystem::path>& inputs);

}  // namespace slidestream::cli
