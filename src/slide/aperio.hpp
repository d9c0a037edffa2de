#pragma once

#include <slidestream/slide.hpp>
#include <string>
#include <string_view>

namespace slidestream {

/// Fills format, properties, mpp and magnification from level 0's ImageDescription: Aperio's "key = value" pairs
/// between bars, or OME-XML. Text that is neither gives the description's first line only.
void read_description(std::string_view description, SlideInfo& info);

/// The name that an ImageDescription gives to a label, macro or thumbnail image; empty when it gives none.
std::string associated_name(std::string_view description);

}  // namespace slidestream
