#pragma once

#include <slidestream/slide.hpp>
#include <string_view>

#include "slide/pixel_size.hpp"

namespace slidestream {

/// The pixel size in a description that libvips wrote as XML: its properties openslide.mpp-x and openslide.mpp-y, which
/// it has from the slide that it read. Nothing for other XML, damaged or not. These are level 0's. If slide-level says
/// that the file was made from another level, a size adds a warning; else openslide.objective-power sets the
/// magnification.
SaidPixelSize size_by_vips_xml(std::string_view description, SlideInfo& info);

}  // namespace slidestream
