#pragma once

namespace slidestream::cli {

/// The whole program: parses the command line, does what it says, reports errors, and returns the exit status.
int run_program(int argc, const char* const* argv);

}  // namespace slidestream::cli
