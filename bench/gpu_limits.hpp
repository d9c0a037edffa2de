#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// What the pipeline is held against: each of its parts alone, as fast as this machine has it.

namespace slidestream::bench {

/// Seconds for every tile of a slide decoded from memory by all cores, nothing else. Its rows go to memory, as those of
/// a pipeline must, of which `rows` are kept; 0: every tile to the same place in the cache, where nobody could use it.
double decode_alone(const std::string& path, std::int64_t rows);

/// Pinned host memory to the device and nothing else, bytes a second.
double pinned_copy_rate(int device);

/// A file in the page cache to so many devices, by so many threads for each and through a ring of pinned chunks as the
/// pipeline has it, and nothing else. Bytes a second.
double ring_rate(const std::string& path, int devices, std::size_t threads);

/// Seconds to read files, one after the other, into memory that was touched before, with as many threads as the
/// pipeline reads with.
double read_seconds(const std::vector<std::string>& files, int threads);

}  // namespace slidestream::bench
