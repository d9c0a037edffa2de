#pragma once

#include <exception>
#include <string_view>
#include <system_error>

/// \file
/// How the program says that the system gives it no more threads, or no more memory.

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

}  // namespace slidestream::cli
