#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <slidestream/config.hpp>
#include <slidestream/slide.hpp>
#include <vector>

#include "image/small_level.hpp"
#include "image/views.hpp"

/// \file
/// Pixels of a level that is made smaller while it is read.

namespace slidestream::operators {

/// A whole small level in RGB, host memory.
struct SmallImage {
  Size size;
  std::vector<std::byte> pixels;
  std::vector<bool> is_bad;    ///< for each tile of the level that it was made from: it became white
  std::int64_t bad_tiles = 0;  ///< so many

  ConstHostView view() const noexcept {
    return {pixels.data(), size.width * 3, {0, 0, size.width, size.height}, size, rgb_format};
  }
};

/// Makes the rows of a small level in the calling thread, from the top, and hands each over: `small.size.width` pixels
/// of RGB in host memory, until `take` returns. Missing tiles are white. Memory: a band of the level, that is a row of
/// its tiles, or less where that is more than `band_pixels`. \return the bad tiles that became white \throws SlideError
/// naming the tile on the first bad one, unless it may become white; what `take` throws
std::int64_t read_small_rows(const Slide& slide, const SmallLevel& small, BadTilePolicy on_bad_tile,
                             const std::function<void(const std::uint8_t* row)>& take,
                             std::int64_t band_pixels = max_small_level_pixels);

/// Bytes of the band, and of what rows are made with.
std::uint64_t small_rows_bytes(const SlideInfo& info, const SmallLevel& small);

/// Makes a whole small level so. Memory besides: 3 bytes per pixel of it; where it is a level of the slide nothing
/// else.
SmallImage read_small_level(const Slide& slide, const SmallLevel& small, BadTilePolicy on_bad_tile,
                            std::int64_t band_pixels = max_small_level_pixels);

/// Makes a small level from a larger level. Size and scale are those of `small`: each of its pixels is the one of
/// `larger` at its centre, or the nearest. Memory as `read_small_level`.
/// \param larger  `of_larger_level`
SmallImage read_from_larger(const Slide& slide, const SmallLevel& small, const SmallLevel& larger,
                            BadTilePolicy on_bad_tile);

}  // namespace slidestream::operators
