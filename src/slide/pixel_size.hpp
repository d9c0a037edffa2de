#pragma once

#include <optional>
#include <slidestream/slide.hpp>
#include <string_view>

namespace slidestream {

/// Sets `mpp`. If both sizes are known, sets `said_mpp_y` where they differ, and `mpp_y` where they differ by more than
/// 1 %. Micrometres per pixel. Where one is a hundred times the other or more, nothing is set, and a warning says so: a
/// place that leaves out one unit says such sizes. \param place  where they come from, as messages call it
/// \returns whether they can be a pixel's
bool set_pixel_size(SlideInfo& info, const std::optional<double>& x, const std::optional<double>& y,
                    std::string_view place);

}  // namespace slidestream
