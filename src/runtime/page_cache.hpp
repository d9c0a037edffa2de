#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// \file
/// Whether files lie in the system's page cache, and getting them out of it.

namespace slidestream::runtime {

/// Asks the system to forget what it caches of a file (posix_fadvise). What is being written, or mapped by another
/// process, stays, and some file systems don't listen: `cached_share` tells.
void drop_from_cache(const std::string& path) noexcept;

/// Share of the files' bytes that are cached; nothing where the system can't tell.
std::optional<double> cached_share(const std::vector<std::string>& paths) noexcept;

/// The same of a file that is open, of so many bytes. The kernel counts (cachestat, from Linux 6.5 on, for files that
/// this process owns or may write), of a large file in parts that lie evenly over it. Otherwise, and on overlayfs,
/// samples are read, if they are there (preadv2 with RWF_NOWAIT): these may make the kernel fetch single pages, so they
/// are at other places in each process.
std::optional<double> cached_share(int descriptor, std::uint64_t bytes) noexcept;

}  // namespace slidestream::runtime
