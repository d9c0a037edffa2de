#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "slide/openslide/library.hpp"

namespace slidestream::openslide {

/// Handles of one slide. One serves one thread at a time, so there come to be as many as threads decode at once. In a
/// child of a fork none is kept: its lock may be held by a thread of the parent, and files have positions.
class Handles {
 public:
  Handles(std::shared_ptr<const Library> library, std::filesystem::path path, int descriptor);
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  const Library& library() const noexcept { return *library_; }

  /// While the slide is opened: the cache of all handles, of which `first` is the only one.
  void set_cache(std::size_t bytes, const Handle& first);
  std::size_t cache_bytes() const noexcept { return cache_bytes_; }

  /// While the slide is opened: the first, without a cache. \throws as `open_handle`
  std::unique_ptr<Handle> take_first(const std::function<bool()>& give_up) const;

  /// \throws Error when it can't be opened again
  std::unique_ptr<Handle> take();
  void give_back(std::unique_ptr<Handle> handle);

 private:
  /// The library opens by name, and the name may be another file's by now.
  void check_file() const;

  const std::shared_ptr<const Library> library_;
  const std::filesystem::path path_;
  const int descriptor_;
  const pid_t process_ = ::getpid();
  Cache* cache_ = nullptr;
  std::size_t cache_bytes_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Handle>> free_;  // guarded by mutex_
};

}  // namespace slidestream::openslide
