#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <slidestream/image.hpp>
#include <span>

#include "cuda/encode/encode_batch.hpp"
#include "cuda/encode/encode_tables.hpp"

/// \file
/// Thousands of JPEG tiles a launch, byte for byte as the host's TileEncoder makes them: baseline, abbreviated streams,
/// grey or YCbCr 4:2:0, 4:2:2 or 4:4:4.
///
///     JpegEncoderLimits limits{.tiles = 4096, .side = 256, .format = rgb_format, .scratch_bytes = 128 << 20};
///     JpegEncoder encoder(limits, 85, device_memory);       // JpegEncoder::device_bytes(limits)
///     encoder.enqueue(plane, tiles, out, stream);
///     copy out.offsets and *out.scratch_units back, wait, and see whether `fits`; then copy the bytes.

namespace slidestream::cuda {

/// Where a batch of n tiles goes; all of it device memory that belongs to the batch until the stream has passed it.
struct JpegEncoderOutput {
  /// Tiles back to back in the order in which they were given. No byte beyond is ever written: a tile that doesn't fit
  /// in whole isn't written. Where scratch memory was full, tiles may be written in part: see `fits`.
  std::span<std::byte> bytes;
  /// n + 1 words: where each tile begins in `bytes`, and at last where they end; also when they don't fit.
  std::span<std::uint64_t> offsets;
  /// What the batch wanted of the encoder's scratch memory.
  std::uint32_t* scratch_units = nullptr;
};

/// Encodes batches on the device that was current when it was made, one after the other. Made once a stream: its memory
/// belongs to the batch under way. Used by one thread at a time.
class JpegEncoder {
 public:
  /// Device memory that an encoder needs. \throws as `require_sound`.
  static std::size_t device_bytes(const JpegEncoderLimits& limits) {
    require_sound(limits);
    return JpegEncoderMemory(limits).size;
  }

  /// Copies its tables to the device, and waits for that.
  /// \param quality  1 to 100. \param device  aligned to 256 bytes; stays the encoder's as long as it lives.
  /// \throws CudaError; as `require_sound`; std::length_error when `device` is too small; Error when libjpeg refuses
  ///   the quality.
  JpegEncoder(const JpegEncoderLimits& limits, int quality, std::span<std::byte> device);

  /// What TIFF calls JPEGTables.
  std::span<const std::byte> tables() const noexcept { return tables_.jpeg_tables; }

  /// Puts all of a batch's work on `stream`. Doesn't allocate, synchronise, or touch other streams. All of this must
  /// stay until the stream has passed it.
  /// \param plane  in the encoder's format, of any alignment; pixels beyond the image repeat its last column and row.
  ///   Fast where `data` and the pitch are multiples of 8 bytes and tiles begin at columns that are multiples of 8.
  /// \param tiles  in pinned memory; at most the limit. Pixels of each that are in the image are in the plane; there is
  ///   at least one.
  /// \throws CudaError; as `make_encode_task`; std::length_error for too few offsets.
  void enqueue(const ConstPixelView<MemorySpace::device>& plane, std::span<const JpegTilePosition> tiles,
               const JpegEncoderOutput& out, cudaStream_t stream);

 private:
  JpegEncoderLimits limits_;
  EncodeTables tables_;
  JpegEncoderMemory memory_;
  std::byte* device_;
  std::uint32_t multiprocessors_ = 1;
};

}  // namespace slidestream::cuda
