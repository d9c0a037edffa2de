#pragma once

#include "cli/command.hpp"

namespace slidestream::cli {

/// `pipeline compare`.
void add_compare_command(CLI::App& app, Action& action);

}  // namespace slidestream::cli
