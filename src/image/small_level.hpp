#pragma once

#include <slidestream/slide.hpp>

#include <cstddef>
#include <optional>

#include "image/block_means.hpp"
#include "image/mask.hpp"

/// \file
/// The small level of a slide that masks and stains are found on.

namespace slidestream {

/// Micrometres per pixel of the small level.
inline constexpr double small_level_mpp = 8.0;
/// Pixels of level 0 along a pixel of the small level, for slides that don't say their pixel size.
inline constexpr double small_level_reduction = 32.0;
/// The small level is never larger.
inline constexpr std::int64_t max_small_level_pixels = std::int64_t{1} << 26;

/// An image of larger pixels that is made of a level: means of 2^halvings x 2^halvings pixels first (`BlockMeans`),
/// then of areas of these (`AreaResampler`). So a level that lacks, and that would be the mean of level 0, changes
/// nothing.
struct SmallLevel {
  std::size_t level = 0;        ///< index into the slide's levels, from whose pixels it is made
  int halvings = 0;             ///< of that level, first
  std::int64_t factor = 65536;  ///< halved pixels along one of its own, times 65,536; 65,536: these themselves
  Size size;                    ///< pixels
  GridScale scale;              ///< level 0 pixels per pixel of it
};

/// What the columns and rows of a level count in means. The last ones may reach beyond level 0, and count by the part
/// inside.
struct LevelWeights {
  PixelWeights across;
  PixelWeights down;
};
LevelWeights weights_of_level(const SlideInfo& info, std::size_t level);

/// Pixels of `reduction` pixels of level 0 along a side, of the coarsest level that is not coarser. Pixels that have
/// the size within `tolerance`, a part of 1, are taken as they are, and level 0's where these are larger. Finer where
/// it would have no pixel, or take more than 256 x 256 of the level's for one.
SmallLevel choose_reduction(const SlideInfo& info, double reduction, double tolerance = 0.02);

/// The small level has pixels of 8 micrometres (without a pixel size: of 32 pixels of level 0), whatever levels a slide
/// has. It is halved where it would have more than 2^26 pixels.
/// \param mpp  micrometres per pixel of level 0, where known
SmallLevel choose_small_level(const SlideInfo& info, const std::optional<double>& mpp);

/// Pixels of the same size, of the next larger level. Nothing if `small` is made of level 0. Their number may differ by
/// what the levels' sizes are rounded by, and pixels are smaller where a level's would be too many for one.
std::optional<SmallLevel> of_larger_level(const SlideInfo& info, const SmallLevel& small);

}  // namespace slidestream
