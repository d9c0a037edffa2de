#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/slide.hpp>

#include "slide/open_budget.hpp"

namespace slidestream {

/// Whether a level shows what a larger one shows. Places of the smaller one are compared with the means of the pixels
/// that they cover in the larger one: the six with the most contrast together, by correlation or by difference, and
/// each of them, and of a grid of up to 4 x 4 places, by itself. One place that shows something else is enough: its
/// mean, or a third of its blocks, lies outside the means of the larger level there and a block beside it, by more than
/// 12 of 255 and four deviations of a mean of single pixels. So a label in a corner of a level is found, and blur,
/// sharpening, coarse JPEG, half a pixel's displacement and single pixels in place of means are no difference.
///
/// Labels and macro images of the slide's shape aren't like it. A level of one colour is like it where that is the
/// larger one's. Places where tiles of either level are missing or damaged are left out; a level that can be compared
/// nowhere isn't like it, unless it is of one colour.
///
/// A level of at most 2^21 pixels is looked at whole. Of others the tiles of the grid are, as many as have 2^22 pixels
/// together; and so many places of the larger one, mostly a tile each. With JPEG 2000 it is a quarter of all these.
/// Levels of less than 2^10 pixels, or of a millionth of the larger one's, on which no label can be read, are like it;
/// levels with tiles of more than 2^24 pixels aren't. Pictures of at most 2^25 pixels are held at a time. In the
/// calling thread. \param budget  asked before each tile and place. \throws SlideError when the system fails, or the
/// budget is spent
bool is_like_level(const Slide& slide, std::size_t larger, std::size_t level, const OpenBudget& budget);

/// Most bytes of pictures that `is_like_level` holds at a time for these levels, as files have them.
std::uint64_t likeness_bytes(const Level& larger, const Level& level) noexcept;

}  // namespace slidestream
