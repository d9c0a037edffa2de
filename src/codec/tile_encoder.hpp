#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/image.hpp>
#include <vector>

/// \file
/// Tiles of any image as the bytes that files hold.

namespace slidestream {

enum class TileCompression {
  none,
  jpeg,       ///< 8-bit samples, 1 or 3 channels; abbreviated streams, colour as YCbCr
  zstd,       ///< a frame of libzstd at level 3
  blosc_lz4,  ///< a buffer of libblosc (LZ4 at level 5, bytes of wide samples shuffled); planes alone
  copy,       ///< level 0 has the JPEG tiles of another file; the others as `jpeg`
};

/// As settings have it.
const char* name_of(TileCompression compression) noexcept;

/// Whether a compression can hold such pixels.
bool can_encode(TileCompression compression, PixelFormat format) noexcept;

/// Encodes square tiles of one size. What a tile lacks at an image's right and lower edge is filled by repeating its
/// last column and row of pixels, so that the result depends on the tile's pixels alone. One object a thread.
class TileEncoder {
 public:
  virtual ~TileEncoder() = default;

  /// What all tiles share: JPEG's tables, otherwise nothing.
  virtual std::vector<std::byte> tables() { return {}; }

  /// \param tile  in the encoder's format, of 1 to `side` columns and rows. \throws Error when the codec fails.
  virtual std::vector<std::byte> encode(const ConstPixelView<MemorySpace::host>& tile) = 0;
};

/// \param quality  of JPEG, 1 to 100. \param side  of a tile in pixels. \param subsampling  of JPEG in colour.
/// \throws Error for what can't be encoded so.
std::unique_ptr<TileEncoder> make_tile_encoder(TileCompression compression, PixelFormat format, int quality, int side,
                                               ChromaSubsampling subsampling = ChromaSubsampling::s420);

/// The most bytes that such an encoder keeps and takes for a tile, with the tile that it gives.
std::uint64_t encoder_bytes(TileCompression compression, PixelFormat format, int side) noexcept;

/// An encoder of tiles as JPEG files, each with its tables and as large as its part of the image. As above otherwise.
std::unique_ptr<TileEncoder> make_jpeg_file_encoder(PixelFormat format, int quality, int side,
                                                    ChromaSubsampling subsampling = ChromaSubsampling::s420);

}  // namespace slidestream
