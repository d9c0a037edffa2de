#pragma once

#include <cstdint>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/slide.hpp>
#include <vector>

#include "image/mask.hpp"
#include "operators/tissue/ink.hpp"

namespace slidestream::operators {

/// Blocks that stains are fitted to, at most, and pixels of their sides.
inline constexpr std::int64_t most_stained_blocks = 256;
inline constexpr std::int64_t stained_block_side = 64;

/// Red, green and blue of the pixels of tissue in up to 256 blocks of 64 x 64 pixels of `target` micrometres, made of
/// the coarsest level that is not coarser (`choose_reduction`). So a fit doesn't depend on the levels that a slide has,
/// as far as these are means of level 0. Pixels that are dark as means (`dark_below`), or touch such pixels of their
/// block, are left out: frames and gaps of scans aren't stain, and no stain is as dense. So are pixels that are seen
/// through ink of the given colours (`mark_seen_through`), as far as their block shows it. Blocks lie on a grid from
/// (0, 0), and those at the right and bottom edges may be smaller. Of those that are tissue at least by half (where
/// there are fewer than 256: of those with any), as many are taken at equal steps of the grid's row-major order.
/// Without a pixel size a micrometre is 4 pixels of level 0. Reads in the calling thread. \param mpp  micrometres per
/// pixel of level 0, where known \throws SlideError naming the tile on the first bad one, unless it may become white
std::vector<std::uint8_t> stained_blocks(const Slide& slide, const std::optional<double>& mpp, const Mask& tissue,
                                         double target, BadTilePolicy on_bad_tile, const InkColours& ink = {});

/// The most bytes that stained blocks of this size take, and the fit to them.
std::uint64_t stained_blocks_bytes(const SlideInfo& info, const std::optional<double>& mpp, double target);

}  // namespace slidestream::operators
