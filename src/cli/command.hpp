#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace slidestream::cli {

/// What the program was asked for and hasn't done yet; a command sets it when the command line names it. It returns the
/// exit status, and may throw ConfigError and OutputError (2), SlideError (1) and any other Error (3).
using Action = std::function<int()>;

/// A check for an option whose value can't be empty: what is wrong with it, or nothing.
inline std::string not_empty(const std::string& text) { return text.empty() ? "can't be empty" : ""; }

/// Statuses that the program ends with, besides 128 + the number of a signal.
enum ExitStatus : int {
  exit_done = 0,
  exit_some_failed = 1,
  exit_usage = 2,
  exit_ended_early = 3,
};

}  // namespace slidestream::cli
