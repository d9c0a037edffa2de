#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

/// \file
/// What the control groups of this process leave it: limits of Slurm, containers and services.

namespace slidestream {

/// Limits of the process's groups, the smallest of its own and of all above it.
struct GroupLimits {
  std::optional<std::uint64_t> memory;       ///< bytes that a group may have
  std::optional<std::uint64_t> memory_left;  ///< bytes that can still be had; caches of files can be given up
  std::optional<int> processors;             ///< the quota of processor time, rounded up; at least 1
};

/// Reads the limits, of version 1 and version 2. The process's groups stand in /proc/self/cgroup, and
/// /proc/self/mountinfo says where they are. Thread-safe.
/// \param root  what stands before all paths, for tests
GroupLimits group_limits(const std::filesystem::path& root = "/");

/// Processors that this process may use, by its affinity mask and its groups; at least 1. Thread-safe.
int allowed_processors() noexcept;

}  // namespace slidestream
