#pragma once

#include <optional>
#include <slidestream/slide.hpp>
#include <string_view>

namespace slidestream {

/// A pixel size that one place of a file says, in micrometres.
struct SaidPixelSize {
  std::optional<double> x;
  std::optional<double> y;
};

/// Sets `mpp`. If both sizes are known, sets `said_mpp_y` where they differ, and `mpp_y` where they differ by more than
/// 1 %. Micrometres per pixel. Where one is a hundred times the other or more, nothing is set, and a warning says so: a
/// place that leaves out one unit says such sizes. \param place  where they come from, as messages call it
/// \returns whether they can be a pixel's
bool set_pixel_size(SlideInfo& info, const std::optional<double>& x, const std::optional<double>& y,
                    std::string_view place);

/// Sets the slide's pixel size by two places of its file, of which the first counts. If it says nothing, or what can't
/// be a pixel's, the second does. A size in one direction alone, and places that differ by more than 2 %, add a
/// warning. \param place, other_place  what messages call them
void settle_pixel_size(SlideInfo& info, const SaidPixelSize& said, std::string_view place, const SaidPixelSize& other,
                       std::string_view other_place);

}  // namespace slidestream
