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

/// Whether no process has that number, or one that ended and whose parent hasn't asked how. While other threads of it
/// are left it lives: they may still write.
bool has_ended(std::int64_t pid, const ProcessState& state);
bool has_ended(std::int64_t pid);

}  // namespace slidestream
