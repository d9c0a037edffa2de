#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

/// \file
/// Square tiles as JPEG, with libjpeg's defaults: accurate integer transform, its colour conversion and downsampling,
/// the standard's Huffman tables.

namespace slidestream {

/// What is in the tiles.
enum class JpegColour {
  grey,         ///< of grey samples
  grey_of_rgb,  ///< luminance of RGB
  rgb,          ///< RGB as it is; components are called 0, 1, 2, as Aperio's scanners do
  ycbcr_444,
  ycbcr_422,
  ycbcr_420,
};

/// Compresses tiles of one size to abbreviated streams, which need `tables()`. They have no JFIF and no Adobe marker.
/// One object a thread.
class JpegCompressor {
 public:
  /// \param side  of a tile in pixels. \param quality  1 to 100. \throws Error when libjpeg refuses.
  JpegCompressor(JpegColour colour, int quality, int side);
  ~JpegCompressor();
  JpegCompressor(JpegCompressor&&) noexcept;
  JpegCompressor& operator=(JpegCompressor&&) noexcept;

  /// The tables that all tiles share: what TIFF calls JPEGTables. Valid until the next call.
  std::span<const std::byte> tables();

  /// A tile, of `side` rows of `side` interleaved pixels. Valid until the next call. \throws Error.
  std::span<const std::byte> compress(std::span<const std::uint8_t* const> rows);

  /// An image of 1 to 65,500 columns and rows as a file of its own: with tables and a JFIF header. Valid until the next
  /// call. \throws Error.
  std::span<const std::byte> compress_file(std::span<const std::uint8_t* const> rows, int width);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slidestream
