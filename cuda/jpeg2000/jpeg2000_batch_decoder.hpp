#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/colour/colour_program.hpp"
#include "cuda/jpeg2000/device_batch.hpp"
#include "cuda/jpeg2000/jpeg2000_batch.hpp"

/// \file
/// Thousands of JPEG 2000 tiles a launch, to luminance or RGB.
///
///     Jpeg2000BatchLimits limits{.tiles = 16384, .compressed_bytes = 256 << 20};
///     Jpeg2000Batch batch(limits, pinned);                  // Jpeg2000Batch::upload_bytes(limits) of pinned memory
///     Jpeg2000BatchDecoder decoder(limits, device_memory);  // Jpeg2000BatchDecoder::device_bytes(limits)
///     for each tile: batch.add(bytes, offset, demand, placement) or batch.add_white(placement);
///     copy the compressed bytes to the device, on `stream`
///     decoder.enqueue(plane, verdicts, batch, compressed, stream);
///     copy batch.tiles() verdicts back; tiles with a verdict other than none go through the CPU's decoder, and their
///     pixels over those in the plane.

namespace slidestream::cuda {

/// Decodes batches on the device that was current when it was made, one after the other. Made once a stream: its memory
/// belongs to the batch under way, so that batches on several streams need a decoder each. Used by one thread at a
/// time.
class Jpeg2000BatchDecoder {
 public:
  /// Device memory that a decoder needs.
  static std::size_t device_bytes(const Jpeg2000BatchLimits& limits);

  /// `device` is aligned to 256 bytes and stays the decoder's as long as it lives; of it all but the first
  /// `Jpeg2000DecoderMemory::kept_bytes` may be others' between batches. Waits for a copy to it.
  /// \throws CudaError; std::length_error when it is too small.
  Jpeg2000BatchDecoder(const Jpeg2000BatchLimits& limits, std::span<std::byte> device);

  /// Puts all of a batch's work on `stream`: the copy of its description from `batch`'s upload memory, and the kernels.
  /// Doesn't allocate, synchronise, or touch other streams. What arguments refer to must stay until the stream has
  /// passed it. \param plane  where the placements' offsets begin. Only the rectangles of tiles, missing ones too, are
  /// written. \param verdicts  device memory for `batch.tiles()` words. Each is Jpeg2000Reason::none, or why the tile
  /// can't be
  ///   vouched for: then its pixels are unspecified.
  /// \param batch  made with the decoder's limits.
  /// \param compressed  device memory, aligned to 16 bytes, as the offsets given to `batch.add` mean; its size is a
  ///   multiple of 16 and at least `batch.compressed_end()`. Bytes between tiles may be anything.
  /// \param colours  what RGB is converted by, with `every`, where the batch converts; missing tiles stay white.
  /// \throws CudaError when something can't be enqueued; std::length_error when `compressed` is too small.
  void enqueue(std::uint8_t* plane, std::uint32_t* verdicts, const Jpeg2000Batch& batch,
               std::span<const std::byte> compressed, cudaStream_t stream, const DeviceColours& colours = {});

 private:
  Jpeg2000UploadLayout layout_;
  std::uint32_t multiprocessors_ = 0;
  std::byte* upload_;
  Jpeg2000DeviceBatch device_{};
};

}  // namespace slidestream::cuda
