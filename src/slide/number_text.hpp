#pragma once

#include <optional>
#include <slidestream/slide.hpp>
#include <string_view>

/// \file
/// Numbers and units in descriptions, XML and properties.

namespace slidestream {

/// `positive_number` of a value that a file has for `what`. One that can't be read adds a warning; an empty one says
/// nothing.
std::optional<double> said_number(std::string_view text, std::string_view what, SlideInfo& info);

/// Micrometres of a unit of length: all of the OME schema's, and common spellings; an empty one is micrometres. None
/// for what is no length, such as "pixel".
std::optional<double> micrometres_of(std::string_view unit);

/// A pixel size in micrometres as a slide may have it: 0.001 to 1000. Another one adds a warning and is none.
std::optional<double> said_pixel_size(const std::optional<double>& micrometres, std::string_view what, SlideInfo& info);

}  // namespace slidestream
