#pragma once

#include <memory>

#include "cli/command.hpp"
#include "cli/run_options.hpp"

namespace slidestream::cli {

/// Adds `pipeline convert`; what it returns is set when the command line is parsed.
std::shared_ptr<RunOptions> add_convert_command(CLI::App& app, Action& action);

}  // namespace slidestream::cli
