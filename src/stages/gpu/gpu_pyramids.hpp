#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda/encode/jpeg_encoder.hpp"
#include "cuda/pyramid/device_pyramid.hpp"
#include "planning/device_sizing.hpp"
#include "runtime/cuda/resources.hpp"
#include "stages/images/parcel.hpp"
#include "stages/run/batch.hpp"

/// \file
/// Images on a device: their levels, their tiles as JPEG, and what of them goes to the host.

namespace slidestream {

/// Encoders of one compute stream, one for each format of pixels.
class StreamEncoders {
 public:
  /// Takes `layout.pyramids.encoders` of `memory`. \throws CudaError.
  StreamEncoders(std::span<const DeviceImage> images, const DeviceLayout& layout, std::span<std::byte> memory);

  /// Null where such an image leaves the device as rows.
  cuda::JpegEncoder* of(const DeviceImage& image) const noexcept;

 private:
  struct Encoder {
    PixelFormat format;
    std::unique_ptr<cuda::JpegEncoder> encoder;
  };
  std::vector<Encoder> encoders_;
};

/// The images of a slide on their way through a device: what lies between two batches.
class ChainPyramids {
 public:
  /// \param all  images. \param level  of the slide. \param memory  `layout.pyramids.kept` bytes of the device.
  ChainPyramids(std::span<const DeviceImage> all, const Level& level, std::span<std::byte> memory);

  struct Image {
    PyramidLayout layout;
    KeptRows kept;
    std::int64_t rows_at_a_time;
    std::byte* rows;  ///< that are kept
    std::unique_ptr<cuda::DevicePyramid> pyramid;
  };
  std::vector<Image> images;
};

/// Levels and tiles of the batch in a slot.
class SlotPyramids {
 public:
  struct Memory {
    std::span<std::byte> band;        ///< device: rows of all levels
    std::span<std::byte> encoded;     ///< device
    std::span<std::byte> words;       ///< device
    std::span<std::byte> host_words;  ///< pinned
    std::span<std::byte> places;      ///< pinned
  };
  SlotPyramids(std::span<const DeviceImage> images, const DeviceLayout& layout, const Memory& memory);

  /// A new batch.
  void begin();

  /// Makes room for rows [first, first + count) of the image of that number. Rows from batches before come to their
  /// places. \returns where the image's rows go. \throws CudaError.
  PixelView<MemorySpace::device> lay_out(std::size_t index, ChainPyramids& chain, const OutputRange& rows,
                                         cudaStream_t stream);

  /// The rows are there: makes the rows of all levels, keeps those that wait, and encodes the tiles that are whole.
  void finish(std::size_t index, ChainPyramids& chain, const StreamEncoders& encoders, cudaStream_t stream);

  /// Copies to the host what it wants to know of the tiles. \throws CudaError.
  void fetch_words(cudaStream_t stream);

  /// Once the stream has passed that: all that is to go to the host, in parcels of at most `most_bytes`.
  std::vector<std::shared_ptr<Parcel>> parcels(std::size_t most_bytes) const;

 private:
  /// Tiles of a level that are encoded at a time, row by row.
  struct Run {
    std::int64_t first = 0;  ///< tile, from the first that became whole
    std::int64_t count = 0;
    std::size_t word = 0;          ///< where their offsets begin; behind them what the encoder wanted of its scratch
    std::span<std::byte> encoded;  ///< what they go to
  };
  struct Made {
    std::size_t image;
    PyramidLayout layout;
    PyramidRows rows;
    std::byte* at;                         ///< device: of the first level
    std::vector<std::vector<Run>> runs{};  ///< by level; empty: rows are fetched
  };
  class Packing;

  static PixelView<MemorySpace::device> view_of(const Made& made, const DeviceImage& image, int level);
  void encode(Made& made, const DeviceImage& image, int level, cuda::JpegEncoder& encoder, cudaStream_t stream);

  std::span<const DeviceImage> images_;
  std::size_t at_once_;
  Memory memory_;
  std::vector<Made> made_;
  std::size_t band_used_ = 0;
  std::size_t encoded_used_ = 0;
  std::size_t words_used_ = 0;
  std::size_t places_used_ = 0;
};

/// Puts the copies of a parcel's tiles to its slot on the stream. \throws CudaError.
void copy_parcel(const Parcel& parcel, cudaStream_t stream);

}  // namespace slidestream
