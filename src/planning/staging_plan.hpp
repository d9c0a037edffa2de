#pragma once

#include <cstddef>

#include <slidestream/config.hpp>

namespace slidestream {

/// A device's pinned ring: chunks that compressed tiles and rows pass through on their way to it.
struct StagingPlan {
  std::size_t chunks = 0;
  std::size_t chunk_bytes = 0;

  std::size_t bytes() const noexcept { return chunks * chunk_bytes; }
};

/// The ring of each of so many devices, at least 1, which share `gpu.staging_mib`.
/// \param last_cache_bytes  of the processors' last-level caches together; 0 where that isn't known
StagingPlan staging_plan(const GpuConfig& gpu, std::size_t last_cache_bytes, std::size_t devices);

}  // namespace slidestream
