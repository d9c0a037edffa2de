#pragma once

#include "cli/command.hpp"

namespace slidestream::cli {

/// `pipeline merge`.
void add_merge_command(CLI::App& app, Action& action);

}  // namespace slidestream::cli
