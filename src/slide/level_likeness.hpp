#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/slide.hpp>

#include "slide/likeness/black_places.hpp"
#include "slide/open_budget.hpp"

namespace slidestream {

/// What the comparison of a level with a larger one tells.
struct LevelLikeness {
  bool is_like = false;
  BlackPlaces black;  ///< of a level that is like the larger one
};

/// Whether a level shows what a larger one shows: the places of the smaller one with the most contrast are compared
/// with the means of the pixels that they cover in the larger one, by correlation or by difference, and with single
/// pixels of it where those are unlike. Labels and macro images of the slide's shape aren't like it. A level of one
/// colour is like it where that is the larger one's. Places where tiles of the larger level are missing or damaged are
/// left out; a level that can be compared nowhere isn't like it, unless it is of one colour. Nor is one that shows more
/// than twice as much over missing tiles as over others. If it shows anything there, difference doesn't count: both
/// must vary alike.
///
/// Those places and two in each corner are also judged one by one in levels of at most 2^23 pixels, where reading them
/// takes some hundredths of a second at most. Such a level isn't like the larger one if a place has pixels that nothing
/// there can have been reduced to, as a label has that lies over a corner. Nor is it if those places together have some
/// blocks of 8 x 8 pixels that differ much where the larger level has one colour, as small type has on blank paper.
/// Nor is it if four places with thin strokes on glass, of this level alone, show small type (`shows_type_on_glass`).
/// Zeros in the larger level, and tiles that share their bytes, may not be written yet, and aren't judged so.
///
/// A level isn't like the larger one, either, if its colours are those with red, green and blue in another order, are
/// numbers of YCbCr that are read as RGB, are RGB that is read as YCbCr, lack red, green or blue, or are grey where the
/// larger one has colours, or the reverse. Of another order clear stain on a hundredth of the slide mostly tells. A
/// level that is darker, paler or tinted is like it.
///
/// The comparison reads all tiles of the smaller level. It reads at most eight if the level has more than 2^23 pixels.
/// So it does if the level has a half, a quarter and so on of the larger one's size, to the pixel, and more than
/// 5 * 2^20 pixels, or 5 * 2^18 beside JPEG 2000. Of the larger level it reads six places, mostly a tile each, twice
/// unless both are grey, again where rows of it have one colour, and up to four more where the smaller
/// one is black. The corners take four tiles of the smaller level and eight places of the larger one more. Small type
/// takes the smaller level's tiles again, in colour, and some tiles of both that rule its places out. Levels of at
/// most 8 x 8 pixels show two letters at most and are like it. Levels that can't be compared aren't: those more than
/// 1024 times smaller along an axis, and those with tiles of more than 2^24 pixels. Pictures of at most 2^26 pixels are
/// held at a time, besides decoded large tiles (`LargeTiles`). In the calling thread.
/// \param budget  asked before each tile and place. \throws SlideError when the system fails, or the budget is spent
LevelLikeness likeness_of(const Slide& slide, std::size_t larger, std::size_t level, const OpenBudget& budget);

/// Most bytes of pictures that `likeness_of` holds at a time for these levels, as files have them.
std::uint64_t likeness_bytes(const Slide& slide, std::size_t larger, std::size_t number);

}  // namespace slidestream
