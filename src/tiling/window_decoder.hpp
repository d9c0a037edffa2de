#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <slidestream/image.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <string>

#include "tiling/tile_stream.hpp"
#include "tiling/white_tiles.hpp"

namespace slidestream {

/// A window, and the address of its pixels on the device.
struct WindowTarget {
  Rect window;  ///< pixels of the resolution; it may reach beyond the image
  std::uint8_t* pixels = nullptr;
};

/// Windows of one size, of one resolution of a slide.
struct WindowTask {
  const Slide* slide = nullptr;
  Resolution resolution;
  bool on_device = false;  ///< the device's decoders take the level's tiles (`WindowDecoder::takes`)
  std::span<const WindowTarget> windows;
  WindowLayout layout = WindowLayout::interleaved;
  std::uint8_t fill = 255;  ///< value of what lies beyond the image
  BadTilePolicy on_bad_tile = BadTilePolicy::fail;
  WhiteTiles* white = nullptr;  ///< counts tiles that became white; null: nobody does
  std::int32_t place = 0;       ///< of the slide, for `white`
};

/// What a decoder is to be ready for at a time; longer tasks are done in several steps.
struct WindowDecoderLimits {
  std::size_t tiles = 1024;
  std::size_t pixels = std::size_t{1} << 26;             ///< of these together
  std::size_t compressed_bytes = std::size_t{24} << 20;  ///< of these together
  bool resamples = false;                                ///< memory for resolutions that no level has is counted
  bool waits_actively = false;  ///< a processor waits for the device: sooner done, where there are few steps

  /// With room for so many tiles of the usual size.
  static WindowDecoderLimits of_tiles(std::size_t tiles);
};

/// Makes windows in the memory of the device that was current when it was made: reads tiles, has the device decode
/// them, and puts windows together there, of the level's pixels or of larger ones (`AreaResampler`). What the device
/// doesn't take, or doesn't vouch for, the CPU decodes: pixels are the CPU's to the bit. Takes its memory when it is
/// first used. Used by one thread at a time, with that device current.
class WindowDecoder {
 public:
  /// \throws CudaError
  explicit WindowDecoder(const WindowDecoderLimits& limits);
  ~WindowDecoder();
  WindowDecoder(const WindowDecoder&) = delete;
  WindowDecoder& operator=(const WindowDecoder&) = delete;

  /// Makes windows, behind what is on the stream already; returns when they are written.
  /// \returns how many tiles the CPU decoded though the device was to. \throws SlideError, CudaError
  std::size_t run(const WindowTask& task);

  /// The stream that windows are written on.
  cudaStream_t stream() const noexcept;

  /// Device memory that such a decoder takes, for JPEG. \throws CudaError
  static std::size_t device_bytes(const WindowDecoderLimits& limits);
  /// Whether the device's decoders take a level's tiles. Reads one of them. \throws SlideError when the system fails
  static bool takes(const Slide& slide, std::size_t level);
  /// One line that says that they don't, or not all of them.
  static std::string note(const Slide& slide, std::size_t level, bool on_device);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slidestream
