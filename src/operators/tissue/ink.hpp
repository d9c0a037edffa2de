#pragma once

#include <cstdint>

#include "image/mask.hpp"
#include "image/views.hpp"

/// \file
/// What lies on a slide's glass and is no tissue: a scanner's dark frame, and strokes of a pen.

namespace slidestream::operators {

/// Pixels whose samples are all below this are dark: frames and gaps of scans, even where they are tinted.
inline constexpr int dark_below = 40;

/// Colours of ink that an image has. Black isn't told: dense nuclei are as dark.
struct InkColours {
  bool green_to_blue = false;
  bool red = false;
};

/// Marks dark pixels of an image, and their eight neighbours, which these have darkened. \param out  of the image's
/// size; pixels are set to 1, none to 0 \param rgb  the whole image, host memory
void mark_dark(Mask& out, const ConstHostView& rgb);

/// Marks strokes of a pen as `mark_dark` marks what is dark.
///
/// A pixel has the colour of ink if it is green to cyan (S >= 40), a blue that has less red than green (S >= 110), a
/// red that has neither more green nor more blue (S >= 190), or a grey below 100. So has a blue of at least 110 whose
/// red is above green by at most a 16th of its chroma (S >= 150): that of ball pens. Usual stains of tissue have none
/// of these: hematoxylin and eosin let red and blue pass, DAB red and green (Ruifrok and Johnston, 2001). Blood is red
/// with S below 190, unless it is very dense. The same four colours are told apart by the pen filters of IBM's
/// deep-histopath (2018), with bounds per channel, which take blood and dense hematoxylin too. Ink is even besides,
/// while tissue has grains: of a pixel and its eight neighbours no channel differs by more than 24. Regions of even
/// pixels of one colour that have at least 256 pixels are ink. So are regions of at least 64 pixels of a thin stroke on
/// glass: glass (all samples at least 170, chroma at most 40) is within 5 pixels on two opposite sides, within 4 on
/// diagonals. The two neighbours at right angles to that differ by at most 24 per channel. Blue has S >= 170 there. So
/// is what lies between two of them that are at most 8 pixels apart, and within 4 pixels of ink what has its hue,
/// however mixed with glass.
/// \param colours  unless null, colours of these regions are added
/// \return pixels of these regions alone, which leave out the edges of strokes, without those marked before
std::int64_t mark_ink(Mask& out, const ConstHostView& rgb, InkColours* colours = nullptr);

/// Marks ink, and pixels within 2 of it: those that an edge of a stroke crosses hold finer pixels that are ink,
/// whatever their mean looks like. \param out  without marks \return the ink's colours
InkColours mark_ink_and_edges(Mask& out, const ConstHostView& rgb);

/// Marks tissue that is seen through strokes of some colours: pixels whose square of 17 x 17, cut by the image, looks
/// so, and pixels within 8 of them. On a slide with green or blue ink 5 of 8 pixels of the square have green above red
/// (S >= 40), or half of them have at most a third as much red as blue, which is most (S >= 150). On one with red ink
/// red is most in half of them, and blue at most half of it (S >= 190). Single nuclei look so, too.
void mark_seen_through(Mask& out, const ConstHostView& rgb, const InkColours& colours);

}  // namespace slidestream::operators
