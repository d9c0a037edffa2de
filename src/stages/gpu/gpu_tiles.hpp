#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/colour/loaded_colours.hpp"
#include "cuda/jpeg/jpeg_batch.hpp"
#include "cuda/jpeg/jpeg_batch_decoder.hpp"
#include "cuda/jpeg2000/jpeg2000_batch.hpp"
#include "cuda/jpeg2000/jpeg2000_batch_decoder.hpp"
#include "planning/device_sizing.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"
#include "stages/run/batch.hpp"

/// \file
/// Compressed tiles of one slot on their way into the slot's plane.

namespace slidestream {

/// What headers of tiles pass through on their way from the current device to the host.
class HeaderRoom {
 public:
  /// \throws CudaError.
  HeaderRoom();
  std::span<std::byte> device() const noexcept { return device_.bytes(); }
  std::span<std::byte> host() const noexcept { return host_.bytes(); }

 private:
  runtime::cuda::DeviceMemory device_;
  runtime::HostMemory host_;
  runtime::cuda::PinnedRange pinned_;
};

/// Decodes the tiles of one slot on the current device.
class SlotDecoder {
 public:
  /// Bytes of device memory that a decoder takes on the current device. \throws CudaError.
  static std::size_t scratch_bytes(const TileLimits& limits);

  /// `planes` are the slot's, that of luminance behind that of RGB where there are both; `compressed` is where its
  /// tiles are gathered. Memory belongs to the caller. \throws CudaError.
  SlotDecoder(const TileLimits& limits, const ByPlane<std::span<std::byte>>& planes, std::span<std::byte> compressed,
              std::span<std::byte> scratch, std::span<std::byte> pinned);

  /// Where tiles are gathered, and behind them what says of uncompressed ones where they go.
  std::span<std::byte> compressed() const noexcept { return compressed_; }

  /// Copies what describing takes of a batch's tiles, which are on the device alone, into the host's slot. Blocks until
  /// it is there. \throws CudaError.
  void fetch_headers(Batch& batch, const HeaderRoom& room, cudaStream_t stream) const;

  /// Describes all tiles of a batch by their fronts in the host's slot, and flags those that the device can't decode.
  void describe(Batch& batch);

  /// Puts the decoding of an uploaded batch on `stream`: into the planes whose pixels (panel.x0, strip.y0) are at
  /// `own_rows`, null for one that nobody wants. \throws CudaError.
  void decode(const Batch& batch, const ByPlane<std::byte*>& own_rows, cudaStream_t stream);

  /// Flags the tiles that the device didn't vouch for, once the stream has passed `decode`. Flagged tiles are in order
  /// then.
  void check(Batch& batch) const noexcept;

 private:
  void describe_jpeg(Batch& batch);
  void describe_jpeg2000(Batch& batch);
  void describe_plain(Batch& batch);
  /// Missing tiles become white, and others are added to `described` by `add(front, length, offset, tile,
  /// placement)`, or flagged.
  template <class Described, class Add>
  void describe_coded(Batch& batch, Described& described, const Add& add);
  /// Where a tile's pixels go.
  cuda::JpegPlacement placement_of(const Batch& batch, const BatchTile& tile) const;
  /// Tiles without a codec. \param colours  what theirs are converted by
  void place(const Batch& batch, const ByPlane<std::byte*>& own_rows, const cuda::DeviceColours& colours,
             cudaStream_t stream);
  /// Copies the verdicts back. `Described` is a batch of either codec.
  template <class Described>
  void fetch_verdicts(const Described& described, cudaStream_t stream);

  TileLimits limits_;
  ByPlane<bool> wanted_;  ///< planes
  Plane plane_;           ///< that coded tiles are decoded to; luminance is written beside RGB where both are wanted
  std::ptrdiff_t luminance_behind_ = 0;  ///< bytes from the beginning of the plane of RGB to that of luminance
  std::span<std::byte> compressed_;
  std::span<std::byte> verdicts_;       ///< device
  std::span<std::byte> host_verdicts_;  ///< pinned
  std::span<std::byte> upload_;  ///< pinned: what one of the batches below knows of its tiles, or where plain ones go
  std::optional<cuda::LoadedColours> colours_;  ///< where those of some slides are converted
  std::optional<cuda::JpegBatch> jpeg_;
  std::optional<cuda::Jpeg2000Batch> jpeg2000_;
  std::unique_ptr<cuda::JpegBatchDecoder> jpeg_decoder_;
  std::unique_ptr<cuda::Jpeg2000BatchDecoder> jpeg2000_decoder_;  ///< null where the CPU decodes JPEG 2000
  std::vector<std::uint32_t> numbers_;  ///< of the batch's tiles, in the order in which the device knows them
};

}  // namespace slidestream
