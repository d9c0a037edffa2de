#pragma once

#include <optional>
#include <string>
#include <vector>

/// \file
/// Whether files lie in the system's page cache, and getting them out of it.

namespace slidestream {

/// Asks the system to forget what it caches of a file (posix_fadvise). What is being written, or mapped by another
/// process, stays, and some file systems don't listen: `cached_share` tells.
void drop_from_cache(const std::string& path) noexcept;

/// Share of the files' bytes that are cached, by samples (preadv2 with RWF_NOWAIT, which reads nothing from storage);
/// nothing where the system can't tell.
std::optional<double> cached_share(const std::vector<std::string>& paths) noexcept;

}  // namespace slidestream
