#pragma once

#include <string>

#include <spdlog/common.h>

/// \file
/// Messages to standard error, through spdlog, and the live line that they mustn't tear.

namespace slidestream::cli {

struct LogOptions {
  spdlog::level::level_enum level = spdlog::level::info;
  bool json = false;  ///< one JSON object a line
};

/// Makes spdlog's default logger write to standard error, one line a message, whatever the message holds.
void set_up_logging(const LogOptions& options);

/// From now on plain lines begin with the time, unless standard error is a terminal: a run's log is read later.
void log_with_time();

/// Shows `line` at the bottom of the terminal, over the one before; messages appear above it. Empty: takes it away.
void show_live_line(const std::string& line);

}  // namespace slidestream::cli
