#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "stages/batch.hpp"

/// \file
/// Compressed tiles of one slot on their way into the slot's plane.

namespace slidestream {

/// Whether a level's tiles are decoded on devices.
bool device_decodes(const Config& config, const Slide& slide, std::size_t level);

/// What a device needs of its memory to decode the tiles of one slot, besides their compressed bytes.
std::size_t decode_scratch_bytes(std::size_t slot_bytes);

/// The device's part of a slot, as far as decoding is concerned. All of it belongs to somebody else.
struct TileMemory {
  std::span<std::byte> compressed;  ///< as the host's slot: compressed bytes, descriptors
  std::span<std::byte> scratch;
  std::byte* own_rows = nullptr;  ///< in the plane: the batch's own first pixel
};

/// Describes tiles [first, first + count) in the slot's room for descriptors, and flags those that the device can't
/// decode. Thread-safe for different tiles.
void describe_tiles(Batch& batch, std::size_t first, std::size_t count);

/// Puts the copies of a batch's compressed bytes and descriptors on `stream`. \returns the bytes copied. \throws
/// CudaError.
std::size_t upload_tiles(const Batch& batch, const TileMemory& memory, cudaStream_t stream);

/// Puts the decoding of an uploaded batch on `stream`. \throws CudaError.
void decode_tiles(const Batch& batch, const TileMemory& memory, cudaStream_t stream);

}  // namespace slidestream
