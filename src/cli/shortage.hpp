#pragma once

#include <cstddef>
#include <exception>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "system/descriptors.hpp"

/// \file
/// How the program says that the system gives it no more threads, memory, or open files.

namespace slidestream::cli {

inline constexpr const char* memory_shortage =
    "out of memory: lower pipeline.memory_mib and pipeline.threads, or raise the limit of memory";
inline constexpr const char* thread_shortage =
    "a thread can't be started: lower pipeline.threads, or raise the limit of processes or of memory";

/// Whether it is what a standard thread, or a worker of oneTBB's, says that can't be started.
inline bool is_thread_shortage(const std::exception& error) {
  if (const auto* of_system = dynamic_cast<const std::system_error*>(&error)) {
    return of_system->code() == std::errc::resource_unavailable_try_again;
  }
  return std::string_view(error.what()).starts_with("pthread_create has failed");
}

/// \throws ConfigError where too few files can be opened for a slide, an image and the tables beside the ledger: a run
/// would wait for others to be closed, and nothing closes them.
inline void check_descriptors() {
  constexpr std::size_t needed = 8;
  const std::size_t free = free_descriptors(needed);
  if (free >= needed) return;
  throw ConfigError("only " + std::to_string(free) + " more files can be opened, and a run needs " +
                    std::to_string(needed) + "; raise the limit of open files (ulimit -n)");
}

}  // namespace slidestream::cli
