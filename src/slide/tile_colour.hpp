#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <slidestream/slide.hpp>
#include <span>

#include "codec/tile_rule.hpp"
#include "slide/level_coding.hpp"

namespace slidestream {

/// What the headers of a tile in JPEG or JPEG 2000 say; nothing where they can't be read. `read` fills the bytes from
/// an offset on, and what it throws comes out.
std::optional<CodedFrame> frame_of_tile(const Level& level, const LevelCoding& coding, const TileRange& tile,
                                        const std::function<void(std::uint64_t, std::span<std::byte>)>& read);

/// What the components of a level's first tile are, by the rule that its decoder asks: tiles may overrule what the
/// slide says, and others of the level may differ. It is what the slide says where no tile is there, or it can't be
/// told. \throws SlideError when the tile can't be read, std::out_of_range for no such level
Colour colour_of_tiles(const Slide& slide, std::size_t index);

}  // namespace slidestream
