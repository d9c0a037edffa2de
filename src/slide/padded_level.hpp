#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <slidestream/slide.hpp>

#include "slide/open_budget.hpp"

namespace slidestream {

/// A level without the pixels that pad its right and lower borders to whole tiles; nothing unless it has such pixels.
///
/// Its sizes say that it may have them. Let B be a side of level 0, and f the power of two that is nearest to the ratio
/// of both widths, 2 to 2^16. A side of the level without padding is ceil(B / f) or floor(B / f). A padded side is
/// ceil(P / f), with P = u ceil(B / u): level 0 in whole units of u pixels. Here u is t, 2 t, 4 t, ... or f t, and t is
/// the tile's side of level 0 or of the level. At least one side must be padded. Without padding, the level has as many
/// columns and rows of tiles as with it.
///
/// A picture that was resized may have such a size, too. So pixels decide.
/// Places far enough from the left and upper borders are compared with what both readings say that they cover in the
/// smallest level before it whose factor is a power of two. The reading whose places correlate better counts. Where
/// nothing tells them apart, the level stays as it is.
///
/// A level whose pixels have a size of their own in the file, by `LevelCoding::said_factor`, may be padded by a tile
/// more. Without that padding it may have fewer columns and rows of tiles.
///
/// 16 tiles of the level at most are read, and 6 places of the other one, twice; of tiles above 2^18 pixels 4 and 2.
/// In the calling thread.
/// \param level  not 0; the levels before it are settled
/// \param budget  asked before each tile and place. \throws SlideError when the system fails, or the budget is spent
std::optional<Level> without_padding(const Slide& slide, std::size_t level, const OpenBudget& budget);

/// A level that ends before the slide's right and lower borders.
struct CutLevel {
  Level level;           ///< with its `cut_factor`, if pixels show it
  bool is_told = false;  ///< whether they do
};

/// What a level is that was cut at its right and lower borders, as writers of whole blocks leave it; nothing unless it
/// may be.
///
/// Its sizes say that it may: both are those of level 0 divided by 2, 3, 4, ... and smaller by up to 3 % or 8 pixels. A
/// picture that was resized may have such a size, too. So pixels decide, as in `without_padding`, and cost as much.
/// Where they show that it was resized, there is nothing. Where nothing tells, it stays as it is.
/// \param level  not 0; the levels before it are settled
/// \param budget  asked before each tile and place. \throws SlideError when the system fails, or the budget is spent
std::optional<CutLevel> cut_level(const Slide& slide, std::size_t level, const OpenBudget& budget);

/// The factor that an image has if it is such a level, by its size alone: a power of two, or the nearest whole number.
/// 0: its size is none of such a level, or is whole.
std::int64_t factor_of_cut(const Size& base, const Size& level) noexcept;

/// Most bytes of pictures that either holds at a time; 0: by its size the level is neither padded nor cut.
/// \param base  level 0
/// \param said_factor  `LevelCoding::said_factor`
std::uint64_t padding_bytes(const Level& base, const Level& level, std::int64_t said_factor) noexcept;

}  // namespace slidestream
