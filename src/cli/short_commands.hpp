#pragma once

#include <memory>
#include <vector>

#include "cli/command.hpp"
#include "cli/run_options.hpp"

namespace slidestream::cli {

/// The commands stain, tissue, features and segment: each is a run with its operator and that operator's usual
/// settings. \returns what each was called with.
std::vector<std::shared_ptr<RunOptions>> add_short_commands(CLI::App& app, Action& action);

}  // namespace slidestream::cli
