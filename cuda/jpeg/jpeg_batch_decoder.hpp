#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/jpeg/device_batch.hpp"
#include "cuda/jpeg/jpeg_batch.hpp"

/// \file
/// Luminance or RGB of thousands of JPEG tiles a launch, or both (`JpegBatchLimits::with_luminance`).
///
///     JpegBatchLimits limits{.tiles = 16384, .compressed_bytes = 256 << 20};
///     JpegBatch batch(limits, pinned);                 // JpegBatch::upload_bytes(limits) of pinned memory
///     JpegBatchDecoder decoder(limits, device_memory);  // JpegBatchDecoder::device_bytes(limits)
///     for each tile: batch.add(bytes, offset, tables, colour, placement) or batch.add_white(placement);
///     batch.finish(decoder.lanes());
///     copy the compressed bytes to the device, on `stream`
///     decoder.enqueue(plane, verdicts, batch, compressed, stream);
///     copy batch.tiles() verdicts back; tiles with a verdict other than none go through the CPU's decoder, and their
///     pixels over those in the plane.

namespace slidestream::cuda {

/// Decodes batches on the device that was current when it was made, one after the other. Made once a stream: its memory
/// belongs to the batch under way, so that batches on several streams need a decoder each. Used by one thread at a
/// time.
class JpegBatchDecoder {
 public:
  /// Device memory that a decoder needs, on the current device.
  /// \throws CudaError
  static std::size_t device_bytes(const JpegBatchLimits& limits);

  /// `device` is aligned to 256 bytes and stays the decoder's as long as it lives.
  /// \throws CudaError; std::length_error when it is too small.
  JpegBatchDecoder(const JpegBatchLimits& limits, std::span<std::byte> device);

  /// Segments that the device decodes at once: for `JpegBatch::finish`.
  std::uint32_t lanes() const noexcept;

  /// Puts all of a batch's work on `stream`: the copy of its description from `batch`'s upload memory, and the kernels.
  /// Doesn't allocate, synchronise, or touch other streams. All of this must stay until the stream has passed it.
  /// \param plane  base that the placements' offsets count from; for RGB a multiple of 16 bytes. Only the tiles'
  ///   rectangles are written. Luminance is fast where rectangles begin at whole 16 (or 32) bytes of a row and pitches
  ///   are multiples of 32; RGB where they begin with the tile's first column at whole 16 bytes, and pitches are
  ///   multiples of 16, its luminance beside it where that is at multiples of 8; all are right everywhere.
  /// \param verdicts  device memory for `batch.tiles()` words: JpegReason::none, or why the tile's pixels, which are
  ///   then unspecified, can't be vouched for.
  /// \param batch  finished, of the decoder's own limits.
  /// \param compressed  device memory, aligned to 16 bytes, as the offsets given to `batch.add` mean; its size is a
  ///   multiple of 16 and at least `batch.compressed_end()`. Bytes between tiles may be anything.
  /// \param colours  what RGB is converted by, for RGB only; missing tiles stay white.
  /// \throws CudaError when something can't be enqueued; std::length_error when `compressed` is too small.
  void enqueue(std::uint8_t* plane, std::uint32_t* verdicts, const JpegBatch& batch,
               std::span<const std::byte> compressed, cudaStream_t stream, const DeviceColours& colours = {});

 private:
  JpegUploadLayout layout_;
  JpegDeviceLimits device_limits_;
  std::byte* upload_;
  JpegDeviceBatch device_{};
};

}  // namespace slidestream::cuda
