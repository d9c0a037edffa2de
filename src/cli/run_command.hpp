#pragma once

#include "cli/run_options.hpp"

namespace slidestream::cli {

/// Runs the pipeline as the options say; returns the exit status. \throws ConfigError, OutputError when nothing was
/// started.
int run(const RunOptions& options);

}  // namespace slidestream::cli
