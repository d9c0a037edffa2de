#pragma once

#include <cstddef>
#include <functional>
#include <string>

/// \file
/// The threads of a run, all of which there are before its graph: where one can't be started later, in the middle of
/// oneTBB's work, the process ends.

namespace slidestream {

/// Threads of the graph: as many as are `wanted`, or, with a message, as many as the system lets be started beside
/// those that the run has besides. \throws ConfigError where that is none.
int threads_to_be_had(int wanted, std::size_t devices, const std::function<void(const std::string&)>& on_message);

/// Has oneTBB start as many workers as an arena of `threads` has beside the caller, while other work doesn't take them.
/// \throws ConfigError where one can't be started.
void start_workers(int threads);

}  // namespace slidestream
