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

/// Micrometres that every slide's pixel is below. Writers that know no size fill in a millimetre.
constexpr double most_pixel_size = 1000.0;
/// Micrometres above which resolutions, and sizes beside an objective, aren't those of a slide.
constexpr double most_scanned_pixel_size = 20.0;

/// A pixel size in micrometres as a slide may have it: from 0.001 to `most`, and below `most_pixel_size`. Another one
/// adds a warning and is none.
std::optional<double> said_pixel_size(const std::optional<double>& micrometres, std::string_view what, SlideInfo& info,
                                      double most = most_pixel_size);

}  // namespace slidestream
