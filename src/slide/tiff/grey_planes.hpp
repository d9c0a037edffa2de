#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/slide_impl.hpp"

namespace slidestream {

/// Which of a slide's channels are red, green and blue.
using ColourPlaces = std::array<std::size_t, 3>;
inline constexpr ColourPlaces red_green_blue = {0, 1, 2};

/// By their names: words or their first letters, in any case and order. Nothing for channels of other names or number.
std::optional<ColourPlaces> places_of_colours(const std::vector<std::string>& names);

/// Makes a slide of colours of one whose file holds red, green and blue as three grey planes of 8 bits: `slide` was
/// opened as any of them. Where the planes differ in levels or tiles, the slide is refused.
void combine_planes(Slide::Impl& slide, const OpenOptions& options, const ColourPlaces& places);

}  // namespace slidestream
