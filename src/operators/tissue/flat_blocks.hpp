#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/image.hpp>
#include <slidestream/slide.hpp>
#include <vector>

#include "image/small_level.hpp"
#include "operators/tissue/small_image.hpp"

/// \file
/// Whether a level has lost parts of its picture, although the file has their tiles: these are of one colour.

namespace slidestream::operators {

/// Squares of a small image that are exactly of one colour. Most glass has noise.
struct FlatBlocks {
  std::int64_t all = 0;    ///< squares that the image has
  std::vector<Rect> flat;  ///< pixels of the image; row by row

  bool are_most() const noexcept { return 2 * static_cast<std::int64_t>(flat.size()) > all; }
};

/// Looks at whole squares of 32 pixels, or of less in small images. They are never flat where a tile is missing or
/// became white.
FlatBlocks find_flat_blocks(const Slide& slide, const SmallLevel& small, const SmallImage& image);

/// Whether a larger level clearly shows something in two of the flat blocks: in the middle of a block its mean is far
/// from the block's colour, and it has contrast or the colour of tissue. Looks at 16 blocks at most, spread over all.
/// Tiles that are missing, bad or huge show nothing. \param larger  number of the level \throws StorageError;
/// StoppedError
bool has_lost_blocks(const Slide& slide, const SmallLevel& small, const SmallImage& image, const FlatBlocks& blocks,
                     std::size_t larger);

}  // namespace slidestream::operators
