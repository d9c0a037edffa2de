#pragma once

#include <cstdint>
#include <vector>

#include "slide/likeness/colour_tiles.hpp"
#include "slide/likeness/level_cells.hpp"

// Small type on the glass of a smaller level.

namespace slidestream {

/// Whether a level shows strokes, as small type has, where the larger one has glass alone. It is a search of samples.
/// Blocks count that have strokes in red, green or blue, with one little coloured colour around them. The places with
/// the most such blocks are compared. A stroke differs from both sides by 24 of 255, and what the larger level's pixels
/// there differ by. Both sides have one colour, so that edges are none. What lies some pixels around must be flat in
/// the larger level, as codecs blur what is there. Places that may not be written yet don't count. \param parts  of the
/// level, which are read again in colour. \param colours  tiles that were decoded before; it gets further ones
/// \throws SlideError as `read_rgb`, if the system fails or the budget is spent
bool shows_type_on_glass(const ComparedLevels& levels, const std::vector<LevelPart>& parts, ColourTiles& colours);

/// Most bytes of pictures that this holds, besides the parts and `colours`.
inline constexpr std::int64_t glass_type_bytes = std::int64_t{5} << 20;

}  // namespace slidestream
