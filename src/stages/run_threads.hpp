#pragma once

#include <cstddef>
#include <functional>
#include <string>

/// \file
/// The threads of a run, all of which there are before its graph: where one can't be started later, in the middle of
/// oneTBB's work, the process ends.

namespace slidestream {

/// Threads of a lane that read, in a run with so many threads of the graph and so many devices (0: on the CPU).
/// Storage, and the copying from the system's cache, answer several requests at a time better than one. Where a device
/// does the rest, that copying is most of what the processors do: with few of them all take part, and with many twelve
/// a device.
std::size_t reading_threads(std::size_t of_graph, std::size_t devices) noexcept;

/// Threads of the graph: as many as are `wanted`, or, with a message, as many as the system lets be started beside
/// those that the run has besides, with `of_networks`. \throws ConfigError where that is none.
int threads_to_be_had(int wanted, std::size_t devices, std::size_t of_networks,
                      const std::function<void(const std::string&)>& on_message);

/// Has oneTBB start as many workers as an arena of `threads` has beside the caller, while other work doesn't take them.
/// \throws ConfigError where one can't be started.
void start_workers(int threads);

}  // namespace slidestream
