#pragma once

#include <cstdint>

/// \file
/// Whether other processes of this machine live.

namespace slidestream {

/// What /proc/PID/stat says of a process.
struct ProcessState {
  char state = '?';
  std::int64_t threads = 0;
  std::int64_t start = 0;  ///< clock ticks since the machine's start; 0: /proc shows nothing
};

ProcessState state_of(std::int64_t pid);

/// `start` of this process, which no other with its number has until the machine starts again. 0: /proc shows nothing,
/// or numbers that aren't those of this process's namespace.
std::int64_t own_start();

/// Whether no process has that number, or one that ended and whose parent hasn't asked how. While other threads of it
/// are left it lives: they may still write.
bool has_ended(std::int64_t pid, const ProcessState& state);
bool has_ended(std::int64_t pid);

}  // namespace slidestream
