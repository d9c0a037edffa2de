#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <slidestream/slide.hpp>

#include "slide/open_budget.hpp"

namespace slidestream {

/// A level without the pixels that pad its right and lower borders to whole tiles; nothing unless it has such pixels.
///
/// The sizes say that it may: it is level 0 in whole tiles, of either level, 2, 4, 8, ... times smaller, but larger
/// than level 0 without padding would be. A picture that was resized may have such a size, too. So pixels decide.
/// Places far enough from the left and upper borders are compared with what both readings say that they cover in the
/// smallest level before it whose factor is a power of two. The reading whose places correlate better counts. Where
/// nothing tells them apart, the level stays as it is.
///
/// 16 tiles of the level at most are read, and 6 places of the other one, twice; of tiles above 2^18 pixels 4 and 2.
/// In the calling thread.
/// \param level  not 0; the levels before it are settled
/// \param budget  asked before each tile and place. \throws SlideError when the system fails, or the budget is spent
std::optional<Level> without_padding(const Slide& slide, std::size_t level, const OpenBudget& budget);

/// Most bytes of pictures that `without_padding` holds at a time; 0: by its size the level isn't padded.
/// \param base  level 0
std::uint64_t padding_bytes(const Level& base, const Level& level) noexcept;

}  // namespace slidestream
