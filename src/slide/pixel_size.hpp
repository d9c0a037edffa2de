#pragma once

#include <optional>
#include <slidestream/slide.hpp>
#include <string_view>

#include "slide/number_text.hpp"

namespace slidestream {

/// A pixel size that one place of a file says, in micrometres.
struct SaidPixelSize {
  std::optional<double> x;
  std::optional<double> y;
};

/// Whether one side is a hundred times the other or more. These aren't one pixel's: mostly a place leaves out one unit.
bool are_far_apart(const SaidPixelSize& said);

/// Whether a side that both say differs by more than 2 %. Any unit will do, if both have it.
bool are_contrary(const SaidPixelSize& said, const SaidPixelSize& other);

/// Adds a warning where two places of a file are contrary. \param place  the one that counts
void compare_pixel_sizes(SlideInfo& info, const SaidPixelSize& said, std::string_view place, const SaidPixelSize& other,
                         std::string_view other_place);

/// The size of the largest image's pixels by what a level says of its own, where that is contrary to `said`. None where
/// the level's sides, which may be rounded or padded to whole tiles, explain it.
std::optional<SaidPixelSize> contrary_size_by_level(const SaidPixelSize& said, const Level& largest,
                                                    const SaidPixelSize& own, const Level& level);

/// `said_pixel_size` of both sides. Those that are far apart stay as they are: `settle_pixel_size` passes over both.
/// \param what_x, what_y  what messages call the sides
SaidPixelSize said_pixel_sizes(const SaidPixelSize& said, std::string_view what_x, std::string_view what_y,
                               SlideInfo& info, double most = most_pixel_size);

/// Sets the slide's pixel size by two places of its file, of which the first counts. If it says nothing, or sides that
/// are far apart, the second does. Sets `mpp`, `said_mpp_y` where the sides differ, and `mpp_y` where they differ by
/// more than 1 %. Sides that are far apart, a size in one direction alone, and places that differ by more than 2 %, add
/// a warning. \param place, other_place  what messages call them
void settle_pixel_size(SlideInfo& info, const SaidPixelSize& said, std::string_view place, const SaidPixelSize& other,
                       std::string_view other_place);

}  // namespace slidestream
