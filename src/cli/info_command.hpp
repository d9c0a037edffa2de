#pragma once

#include "cli/command.hpp"

namespace slidestream::cli {

/// Adds `pipeline info SLIDE|DIR|LIST|-... [--json | --check]`, which sets `action` when it is named.
void add_info_command(CLI::App& app, Action& action);

}  // namespace slidestream::cli
