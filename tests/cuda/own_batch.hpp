#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/jpeg/jpeg_batch.hpp"
#include "cuda/jpeg_tiles.hpp"

namespace slidestream::test {

/// A batch of JPEG tiles with memory of its own.
struct OwnBatch {
  explicit OwnBatch(const cuda::JpegBatchLimits& limits)
      : memory((cuda::JpegBatch::upload_bytes(limits) + 63) / 64),
        batch(limits, std::as_writable_bytes(std::span(memory))) {}
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory;
  cuda::JpegBatch batch;

  cuda::JpegReason add(const NamedTile& tile, std::uint64_t offset = 0) {
    cuda::JpegPlacement placement;
    placement.pitch = 4096;
    placement.width = static_cast<std::uint32_t>(tile.width);
    placement.height = static_cast<std::uint32_t>(tile.height);
    return batch.add(tile.bytes, offset, tables, whole_tile(tile.colour, tile.width, tile.height), placement);
  }
  cuda::JpegLevelTables tables;

  template <class T>
  std::span<const T> part(std::size_t offset, std::size_t count) const {
    return {reinterpret_cast<const T*>(batch.upload().data() + offset), count};
  }
};

}  // namespace slidestream::test
