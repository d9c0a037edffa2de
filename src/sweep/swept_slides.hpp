#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace slidestream {

/// What the slides are, as a hash: their files, whatever they are called here, with sizes and times.
std::string inputs_hash(const std::vector<std::string>& slides);

/// Whether a run found in the page cache what it read: this share of all bytes of its files was there before.
bool was_warm(double share, std::uint64_t file_bytes, std::uint64_t bytes_read) noexcept;

}  // namespace slidestream
