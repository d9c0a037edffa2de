#pragma once

#include "cli/command.hpp"

namespace slidestream::cli {

/// `pipeline report OUT... --html FILE`.
void add_report_command(CLI::App& app, Action& action);

}  // namespace slidestream::cli
