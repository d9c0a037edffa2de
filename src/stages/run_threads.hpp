#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

/// \file
/// The threads of a run, all of which there are before its graph: where one can't be started later, in the middle of
/// oneTBB's work, the process ends.

namespace slidestream {

/// Threads of a lane that read, in a run with so many threads of the graph and so many devices (0: on the CPU).
/// Storage, and the copying from the system's cache, answer several requests at a time better than one. Where a device
/// does the rest, that copying is most of what the processors do: with few of them all take part, and with many twelve
/// a device.
std::size_t reading_threads(std::size_t of_graph, std::size_t devices) noexcept;

/// What threads are for besides the graph.
struct ThreadNeeds {
  std::size_t devices = 0;                 ///< 0: on the CPU
  std::vector<std::size_t> sessions = {};  ///< of each network, on each device or the CPU: a thread each
};

/// Threads that a run has.
struct RunThreads {
  std::size_t graph = 0;
  std::size_t sessions = std::numeric_limits<std::size_t>::max();  ///< of a network on each device, at most
};

/// The most threads, up to `wanted` of the graph, for which `found` are enough beside the caller. Where they are too
/// few for all, no network has more sessions than the graph has threads. Nothing: not even one of each.
std::optional<RunThreads> threads_within(std::size_t found, std::size_t wanted, const ThreadNeeds& needs);

/// As `threads_within` of those that the system lets be started, with a message where these are fewer.
/// \throws ConfigError where there is none.
RunThreads threads_to_be_had(int wanted, const ThreadNeeds& needs,
                             const std::function<void(const std::string&)>& on_message);

/// Has oneTBB start as many workers as an arena of `threads` has beside the caller, while other work doesn't take them.
/// \throws ConfigError where one can't be started.
void start_workers(int threads);

}  // namespace slidestream
