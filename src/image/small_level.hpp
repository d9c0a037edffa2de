#pragma once

#include <slidestream/slide.hpp>

#include <cstddef>
#include <optional>

#include "image/mask.hpp"

/// \file
/// The small level of a slide that masks and stains are found on.

namespace slidestream {

/// Micrometres a pixel that the small level should have.
inline constexpr double small_level_mpp = 8.0;
/// What level 0 is taken to have where the slide doesn't say: the small level is then the one nearest to 1/32.
inline constexpr double assumed_mpp = small_level_mpp / 32.0;
/// Larger levels are reduced while they are read.
inline constexpr std::int64_t max_small_level_pixels = std::int64_t{1} << 26;

struct SmallLevel {
  std::size_t level = 0;  ///< index into the slide's levels
  int halvings = 0;       ///< j: to be reduced by 2^j while it is read, as a `LevelReducer` makes its level j
  Size size;              ///< after that, pixels
  GridScale scale;        ///< level 0 pixels a pixel of it
};

/// The level whose pixel size is nearest to 8 micrometres, by |log2(mpp / 8)|, the finer one of equals; without a pixel
/// size the one nearest to 1/32 of level 0 in the same sense. Where it has more than 2^26 pixels, the least reduction
/// by 2^j, to ceil(width / 2^j) x ceil(height / 2^j), that has no more. \param mpp micrometres a pixel of level 0,
/// where known: `info.mpp` unless the configuration overrides it
SmallLevel choose_small_level(const SlideInfo& info, const std::optional<double>& mpp);

}  // namespace slidestream
