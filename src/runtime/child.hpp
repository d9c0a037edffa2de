#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

/// \file
/// Other programs, asked for a line.

namespace slidestream::runtime {

/// What a program writes to its standard output until it ends, at most 64 KiB of it. It gets nothing to read, and what
/// it writes to its standard error is nobody's.
///
/// \param command  its name, found as the shell finds it, and what it gets
/// \param most  it has so long; then it is killed
/// \return nothing where it can't be started, wasn't done by then, wrote more, or ended otherwise than with status 0
std::optional<std::string> output_of(std::span<const std::string> command, std::chrono::milliseconds most);

}  // namespace slidestream::runtime
