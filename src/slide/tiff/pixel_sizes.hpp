#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "slide/pixel_size.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

/// What a directory's resolution tags say. Above 20 um per pixel it is a printing resolution, which says nothing of the
/// slide. The unit that ImageJ's description names goes before ResolutionUnit, unless only that gives a slide's pixels;
/// where the two differ, a warning says so. What can't be what they mean is passed over, and becomes a warning.
SaidPixelSize size_by_resolution(const RawTiff& raw, const RawDirectory& directory, std::string_view description,
                                 std::vector<std::string>& warnings);

}  // namespace slidestream
