#pragma once

#include <cstddef>

namespace slidestream::runtime {

/// How many of `wanted` more threads this process may have at once, by the limits of processes, of control groups and
/// of address space: so many are started, and have ended at the return. Other processes may take them in between.
std::size_t startable_threads(std::size_t wanted) noexcept;

}  // namespace slidestream::runtime
