#pragma once

#include <vector>

#include "slide/likeness/colour_tiles.hpp"
#include "slide/likeness/level_cells.hpp"

// Levels in other colours: luminance hardly shows them.

namespace slidestream {

/// Whether cells have the larger level's colours in another order of red, green and blue, as numbers of YCbCr, as RGB
/// that is read as YCbCr, without one of the three, or as grey, or the larger level has theirs so. The mean colours of
/// blocks and thirds of cells are compared, without what all three samples differ by: brightness, white and contrast
/// don't count. For another order the blocks that it would change clearly are also compared alone, less the white of
/// both levels, and eight of them are enough. Places with bad tiles, or where the larger level has one colour, are left
/// out; so are all where both levels are grey.
bool has_other_colours(const ComparedLevels& levels, const std::vector<const LevelCell*>& cells, ColourTiles& colours);

}  // namespace slidestream
