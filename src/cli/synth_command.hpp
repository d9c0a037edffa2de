#pragma once

#include "cli/command.hpp"

namespace slidestream::cli {

/// Adds `pipeline synth --out FILE ...`, which sets `action` when it is named.
void add_synth_command(CLI::App& app, Action& action);

}  // namespace slidestream::cli
