#pragma once

#include "slide/likeness/level_cells.hpp"

// Levels whose red and blue are exchanged: luminance hardly shows it.

namespace slidestream {

/// Whether a cell has the colours of the larger level with red and blue exchanged. Looks at a third of it. Levels that
/// are grey, and places with bad tiles, don't.
bool has_swapped_colours(const ComparedLevels& levels, const LevelCell& cell);

}  // namespace slidestream
