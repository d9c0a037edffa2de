#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "tiling/tile_stream.hpp"

/// \file
/// Windows and rectangles of slides in the memory of a CUDA device, decoded there where its decoders take the slide's
/// tiles. Compiles without CUDA; then, and where no device can be used, all of it throws CudaError.
///
/// What a process that uses CUDA leaves to its children by a fork is of no use to them: they get CudaError, too, and
/// give nothing back.

namespace slidestream {

/// Memory of a device that is lent until it is handed back, or this is destroyed; then it is used again for other
/// pixels, behind all work that was on the streams that are named here.
class DeviceLease {
 public:
  DeviceLease() = default;
  virtual ~DeviceLease() = default;
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;

  virtual std::uint8_t* data() const noexcept = 0;
  virtual int device() const noexcept = 0;
  /// Somebody may have work on a stream (a cudaStream_t of this device; it lives until this is handed back) that uses
  /// the memory. Work on the default streams, and on streams that wait for them, counts without being named.
  /// Thread-safe.
  virtual void used_on(void* stream) = 0;
  /// Others may write to it from now on; it stays readable as long as this lives. Thread-safe.
  virtual void hand_back() noexcept = 0;
  /// Waits for the copy of the first `bytes` to host memory. \throws CudaError
  virtual void copy_to_host(std::uint8_t* to, std::size_t bytes) const = 0;
};

/// The device that `ordinal` names; none: the calling thread's. \throws CudaError, naming the cause, when there is no
/// such device, no driver for it, or no CUDA in this build
int usable_device(std::optional<int> ordinal);

/// Some windows, as `TileBatch` has them, on a device.
struct DeviceBatch {
  std::shared_ptr<DeviceLease> pixels;
  std::vector<std::int64_t> coords;
  std::vector<std::int32_t> slides;
  std::int64_t count = 0;
};

/// What a `TileStream` gives, to the bit, in the memory of a device. Windows are decoded in groups, each by a thread
/// that reads, and waits for the device; a tile that windows of two groups touch is decoded for each. Of the options,
/// `threads` means those, and `memory_mib` device memory, for batches that are being made and for decoding them; 0:
/// what is usual, as far as a quarter of what is free goes. Memory that is too little for one group is exceeded. What a
/// batch's pixels are is written when it is handed out: work on any stream may use them.
class DeviceTileStream {
 public:
  /// \throws ConfigError, CudaError
  DeviceTileStream(TileStreamOptions options, int device);
  ~DeviceTileStream();
  DeviceTileStream(const DeviceTileStream&) = delete;
  DeviceTileStream& operator=(const DeviceTileStream&) = delete;

  /// As `TileStream::next`; \throws CudaError besides
  TileStream::State next(DeviceBatch& batch, std::chrono::milliseconds patience);
  void close() noexcept;

  /// Lines since the last call that say for which slides the CPU decodes, and why: one a slide.
  std::vector<std::string> take_notes();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Reads rectangles of slides into the memory of a device. Any number of threads may use one object.
class DeviceRegionReader {
 public:
  /// \throws CudaError
  explicit DeviceRegionReader(int device);
  ~DeviceRegionReader();
  DeviceRegionReader(const DeviceRegionReader&) = delete;
  DeviceRegionReader& operator=(const DeviceRegionReader&) = delete;

  /// What `RegionReader::read` gives of so many pixels, to the bit, row by row without gaps; it is written when this
  /// returns. \throws SlideError, CudaError
  std::shared_ptr<DeviceLease> read(const Slide& slide, const Resolution& resolution, std::int64_t first_column,
                                    std::int64_t first_row, const Size& size, std::uint8_t fill,
                                    BadTilePolicy on_bad_tile);

  /// See `DeviceTileStream`.
  std::vector<std::string> take_notes();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace slidestream
