#pragma once

#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/slide_impl.hpp"

namespace slidestream {

/// Whether channels of these names are red, green and blue, in this order: words or their first letters, in any case.
bool are_red_green_blue(const std::vector<std::string>& names);

/// Makes a slide of colours of one whose file holds red, green and blue as three grey planes of 8 bits: `slide` was
/// opened as the first of them. Where the planes differ in levels or tiles, the slide is refused.
void combine_planes(Slide::Impl& slide, const OpenOptions& options);

}  // namespace slidestream
