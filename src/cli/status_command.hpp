#pragma once

#include "cli/command.hpp"

namespace slidestream::cli {

/// `pipeline status`.
void add_status_command(CLI::App& app, Action& action);

}  // namespace slidestream::cli
