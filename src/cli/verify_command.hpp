#pragma once

#include "cli/command.hpp"

namespace slidestream::cli {

/// `pipeline verify`.
void add_verify_command(CLI::App& app, Action& action);

}  // namespace slidestream::cli
