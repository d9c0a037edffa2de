#pragma once

#include <cstddef>
#include <slidestream/config.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <vector>

#include "codec/copied_level.hpp"
#include "slide/level_coding.hpp"

/// \file
/// JPEG tiles of a slide, for another file that is to have them as they are.

namespace slidestream {

/// Looks whether the tiles of level `index` can be copied, at its first one that is there: baseline JPEG of one size, a
/// square with a side that is a multiple of 16, 16 to 4096, as TIFF has it; grey for pixels of `format` with one
/// channel, RGB without subsampling or YCbCr for those with three. \param on_bad_tile  `white`: at the first one that
/// is sound. \throws SlideError with the slide's name and what doesn't fit.
CopiedLevel copied_level(const Slide& slide, std::size_t index, const PixelFormat& format, BadTilePolicy on_bad_tile);

/// Appends a tile, of which `range` was read, as `append_picture` has it. \throws TileError when it isn't coded like
/// the first one.
void append_copied_tile(std::vector<std::byte>& to, const CopiedLevel& level, const LevelCoding& coding,
                        std::span<const std::byte> range);

}  // namespace slidestream
