#include "planning/staging_plan.hpp"

#include <algorithm>
#include <bit>

namespace slidestream {
namespace {

/// Bytes of all rings where `gpu.staging_mib` isn't set: a third of the last-level caches, but no less and no more than
/// these. For three devices or more, `least_share` of each is more than `most_usual`. Bytes that are read pass through
/// the caches, too: so rings get a third.
constexpr std::size_t least_usual = std::size_t{64} << 20;
constexpr std::size_t most_usual = std::size_t{128} << 20;

/// The least that a device gets then: two chunks of 2 MiB for each of twelve threads, the most that read for a device.
constexpr std::size_t least_share = std::size_t{48} << 20;

/// The least chunks of a device, two for each of those threads: it fills one while the other one is copied. There are
/// fewer only where chunks would be shorter than `least_chunk`.
constexpr std::size_t least_chunks = 24;
/// Shorter copies cost more to start than to make, and longer ones make threads wait for each other.
constexpr std::size_t least_chunk = std::size_t{64} << 10;
constexpr std::size_t most_chunk = std::size_t{4} << 20;

}  // namespace

StagingPlan staging_plan(const GpuConfig& gpu, std::size_t last_cache_bytes, std::size_t devices) {
  const std::size_t usual = std::max(std::clamp(last_cache_bytes / 3, least_usual, most_usual), devices * least_share);
  const std::size_t all = gpu.staging_mib > 0 ? static_cast<std::size_t>(gpu.staging_mib) << 20 : usual;
  const std::size_t share = all / devices;
  StagingPlan plan;
  plan.chunk_bytes = std::clamp(std::bit_floor(share / least_chunks), least_chunk, most_chunk);
  plan.chunks = std::max<std::size_t>(1, share / plan.chunk_bytes);
  return plan;
}

}  // namespace slidestream
