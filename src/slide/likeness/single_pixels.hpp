#pragma once

#include <cstdint>
#include <vector>

#include "slide/likeness/level_cells.hpp"

// Levels whose pixels are single ones of the larger level. Where tissue is busy, these differ from the means around
// them as much as pixels of another picture do.

namespace slidestream {

/// Luminance of a pixel of the smaller level, and of one of the larger.
struct PixelPair {
  std::uint8_t small;
  std::uint8_t large;
};

/// Up to 256 pixels of a cell, with those of the larger level that they can have been copied from: all at one offset in
/// what the pixels cover, or in what pixels beside them cover. Of such offsets the one with the least squares of
/// differences. Empty where the cell is too small to tell, or the levels' factor is above 32.
std::vector<PixelPair> closest_pixels(const ComparedLevels& levels, const LevelCell& cell, const CellSight& sight);

}  // namespace slidestream
