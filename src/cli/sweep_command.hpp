#pragma once

#include "cli/command.hpp"

namespace slidestream::cli {

/// `pipeline sweep`.
void add_sweep_command(CLI::App& app, Action& action);

}  // namespace slidestream::cli
