#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <slidestream/slide.hpp>
#include <vector>

#include "codec/jpeg_stream.hpp"

namespace slidestream {

/// What JPEG tiles of one file need to stand in another one as they are.
struct CopiedLevel {
  JpegFrame frame;                ///< of every tile; its size is that of the tiles
  bool ycbcr = false;             ///< else three components are R, G and B, and one is grey
  Colour tag = Colour::rgb;       ///< the colour that the source says
  bool tiles_say_colour = false;  ///< and that marks of its tiles may overrule
  std::vector<std::byte> tables;  ///< that tiles share, as TIFF's JPEGTables; empty: none
  std::vector<std::byte> white;   ///< a tile that is coded like the others, for those that aren't there
  std::uint64_t most_bytes = 0;   ///< that all tiles come to as they are, without `tables`
};

/// How a level is made whose tiles are copied; null where none is.
using CopiedLevelPtr = std::shared_ptr<const CopiedLevel>;

}  // namespace slidestream
