#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <new>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/command.hpp"
#include "config/operator_files.hpp"
#include "sink/image_formats.hpp"
#include "system/descriptors.hpp"
#include "system/full_storage.hpp"

/// \file
/// How the program says that the system gives it no more threads, memory, or open files.

namespace slidestream::cli {

inline constexpr const char* memory_shortage =
    "out of memory: lower pipeline.memory_mib and pipeline.threads, or raise the limit of memory";
inline constexpr const char* thread_shortage =
    "a thread can't be started: lower pipeline.threads, or raise the limit of processes or of memory";

/// Set as the first slide is begun, by any thread.
inline std::atomic<bool> slide_was_begun{false};

/// Set where a run or a command ends as memory or threads lack: what libraries do at the end of the process may need
/// both.
inline std::atomic<bool> has_ended_in_shortage{false};

/// How the process ends if it can't go on: once a slide was begun, before its end.
inline ExitStatus failed_status() noexcept { return slide_was_begun ? exit_ended_early : exit_usage; }

/// Does the work of a command that writes one thing. \throws EndedEarlyError where storage is full
template <class Work>
int on_storage_with_room(const Work& work) {
  try {
    return work();
  } catch (const FullStorageError& error) {
    throw EndedEarlyError(error.what());
  }
}

/// Whether it is what a standard thread, or a worker of oneTBB's, says that can't be started.
inline bool is_thread_shortage(const std::exception& error) {
  if (const auto* of_system = dynamic_cast<const std::system_error*>(&error)) {
    return of_system->code() == std::errc::resource_unavailable_try_again;
  }
  const std::string_view what = error.what();
  return what.starts_with("pthread_create has failed") || what.starts_with("a thread can't be started");
}

/// Whether it says that memory or a thread couldn't be had.
inline bool is_shortage(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr || is_thread_shortage(error);
}

/// What an exception says. Of one that only says that memory lacks: what it was for, and what to do.
inline std::string cause_of(const std::exception& error, const std::string& subject) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  return subject + ": " + memory_shortage;
}

/// Files that are open at a time besides those of the start: a slide, an image and the tables beside the ledger. An
/// image that is a folder has that one open, and folders and files of its levels, about 24 in all; two slides write
/// theirs at a time, the end of one and the beginning of the next.
inline std::size_t needed_descriptors(const Config& config, std::size_t slides) {
  constexpr std::size_t of_run = 8;
  constexpr std::size_t of_folder = 24;
  const ImageFormatTraits& format = traits_of(config.image.format);
  if (!format.is_folder && *format.tiles_folder == '\0') return of_run;
  const auto images = std::ranges::count_if(config.operators.run, may_make_image);
  return of_run + std::min<std::size_t>(slides, 2) * static_cast<std::size_t>(images) * of_folder;
}

/// \throws ConfigError where too few files can be opened: a run would wait for others to be closed, and nothing closes
/// them.
/// \param slides  that are to be done
inline void check_descriptors(const Config& config, std::size_t slides) {
  const std::size_t needed = needed_descriptors(config, slides);
  const std::size_t free = free_descriptors(needed);
  if (free >= needed) return;
  throw ConfigError("only " + std::to_string(free) + " more files can be opened, and a run needs " +
                    std::to_string(needed) + "; raise the limit of open files (ulimit -n)");
}

}  // namespace slidestream::cli
