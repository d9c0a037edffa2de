#pragma once

#include <cstdint>

/// \file
/// Which sample stands for one beyond an axis' ends. Repeated until it is inside, so that borders wider than the image
/// are defined, too; an axis of one sample gives that sample.

#if defined(__CUDACC__)
#define SLIDESTREAM_MIRROR __host__ __device__
#else
#define SLIDESTREAM_MIRROR
#endif

namespace slidestream {

/// Mirrored without repeating the edge sample (numpy's `reflect`): 2 1 | 0 1 2 | 1 0. `size` is at least 1.
SLIDESTREAM_MIRROR constexpr std::int64_t mirror_reflect(std::int64_t i, std::int64_t size) noexcept {
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1);
  std::int64_t place = i % period;
  if (place < 0) place += period;
  return place < size ? place : period - place;
}

/// Mirrored with the edge sample repeated (numpy's `symmetric`): 1 0 | 0 1 2 | 2 1. `size` is at least 1.
SLIDESTREAM_MIRROR constexpr std::int64_t mirror_symmetric(std::int64_t i, std::int64_t size) noexcept {
  const std::int64_t period = 2 * size;
  std::int64_t place = i % period;
  if (place < 0) place += period;
  return place < size ? place : period - 1 - place;
}

}  // namespace slidestream
