#pragma once

#include <cstddef>
#include <slidestream/slide.hpp>

namespace slidestream {

/// What the components of a level's first tile are, by the rule that its decoder asks: tiles may overrule what the
/// slide says, and others of the level may differ. It is what the slide says where no tile is there, or it can't be
/// told. \throws SlideError when the tile can't be read, std::out_of_range for no such level
Colour colour_of_tiles(const Slide& slide, std::size_t index);

}  // namespace slidestream
