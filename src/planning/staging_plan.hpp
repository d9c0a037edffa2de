#pragma once

#include <cstddef>

#include <slidestream/config.hpp>

namespace slidestream {

/// The pinned ring of each device: chunks that compressed tiles and rows pass through on their way there.
struct StagingPlan {
  std::size_t chunks = 0;
  std::size_t chunk_bytes = 0;

  std::size_t bytes() const noexcept { return chunks * chunk_bytes; }
};

/// For so many devices, which share `gpu.staging_mib`. \param last_cache_bytes  of the processors' last caches
/// together; 0 where that isn't known.
StagingPlan staging_plan(const GpuConfig& gpu, std::size_t last_cache_bytes, std::size_t devices);

}  // namespace slidestream
