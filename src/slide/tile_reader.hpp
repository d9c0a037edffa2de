#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/slide.hpp>
#include <vector>

namespace slidestream {

/// The part of a tile that a rectangle of its level asks for.
struct TilePart {
  std::int64_t from_x = 0;  ///< first tile pixel
  std::int64_t from_y = 0;
  HostPixels out;  ///< where it lies in the rectangle's pixels
};

/// What of tile (`column`, `row`) lies in the rectangle of `out`'s size that begins at pixel (`first_column`,
/// `first_row`) of the level. Its width or height isn't positive where nothing does.
TilePart part_of_tile(const Level& level, std::int64_t column, std::int64_t row, std::int64_t first_column,
                      std::int64_t first_row, const HostPixels& out);

/// Where a tile's pixels are from.
enum class TileFate {
  decoded,
  missing,  ///< the file hasn't got it: white
  bad,      ///< it couldn't be decoded: white
};

/// Reads tiles and decodes them, in the calling thread. One object per thread; it keeps its buffers and the codecs'
/// state between tiles of any slides.
class TileReader {
 public:
  /// Reads and decodes the rectangle of tile `index` that begins at tile pixel (`from_x`, `from_y`) and has `out`'s
  /// size, as `TileDecoder::decode` does. Missing tiles are white.
  /// \param on_bad_tile  whether a tile that can't be decoded becomes white
  /// \throws SlideError naming the tile otherwise, or when the system fails
  TileFate read(const Slide& slide, std::size_t level, std::int64_t index, std::int64_t from_x, std::int64_t from_y,
                const HostPixels& out, BadTilePolicy on_bad_tile);

 private:
  TileDecoder decoder_;
  std::vector<std::byte> bytes_;
};

}  // namespace slidestream
