#pragma once

#include <cstddef>

namespace slidestream {

/// How many files this process can open besides those that are open, at most `most`. Thread-safe.
std::size_t free_descriptors(std::size_t most);

}  // namespace slidestream
