#pragma once

#include <optional>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

/// A pixel size that one place of a file says, in micrometres.
struct SaidPixelSize {
  std::optional<double> x;
  std::optional<double> y;
};

/// What a directory's resolution tags say. Above 20 um per pixel it is a printing resolution, which says nothing of the
/// slide. Without a unit it counts only where ImageJ's description has one. What can't be what they mean is passed
/// over, and becomes a warning.
SaidPixelSize size_by_resolution(const RawTiff& raw, const RawDirectory& directory, std::string_view description,
                                 std::vector<std::string>& warnings);

/// Sets the slide's pixel size: `text` goes before `tags`, unless its sizes can't be one pixel's. A contradiction adds
/// a warning.
/// \param place  where `text` comes from, as messages call it
void settle_pixel_size(SlideInfo& info, const SaidPixelSize& text, std::string_view place, const SaidPixelSize& tags);

}  // namespace slidestream
