#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace slidestream::runtime {

/// Processors that this process may use, by its affinity mask and its control groups; at least 1.
int available_processors() noexcept;

/// Bytes of the machine's last caches together, those that processors share; 0 where the system doesn't say.
std::size_t last_cache_bytes() noexcept;

/// Memory of this process that is in the machine's, in bytes; 0 where the system doesn't say.
std::size_t resident_bytes() noexcept;

/// Keeps the calling thread on the processors of a NUMA node, where the machine has several and this process may use
/// any of that node's. A wish: nothing happens for -1, or where the system declines.
void run_near_node(int node) noexcept;

/// Asks for pages that are touched from now on to lie on a NUMA node. A wish, as above. `memory` begins at a page.
void place_on_node(std::span<std::byte> memory, int node) noexcept;

/// Memory that can still be had without swapping, by the system's account and by the limits of this process's control
/// groups; nothing where neither says.
std::optional<std::uint64_t> available_memory();

/// Systems promise more memory than they have, and end who uses it. \param what  wants `bytes`, for the message
/// \throws ConfigError where they are more than can be had
void require_memory(std::uint64_t bytes, const char* what);

/// Sets the process's peak of resident memory back to what is resident now. False where the system declines.
bool reset_peak_memory() noexcept;
/// The peak since then, or since the process began.
std::optional<std::uint64_t> peak_memory();

}  // namespace slidestream::runtime
