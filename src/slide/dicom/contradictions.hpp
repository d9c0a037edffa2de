#pragma once

#include <slidestream/slide.hpp>
#include <string>

#include "slide/dicom/instance_level.hpp"

/// \file
/// What an instance says in two places that differ: which one counts, as a line. It is empty where they agree.

namespace slidestream::dicom {

/// PresentationLUTShape beside PhotometricInterpretation, which counts (PS3.3, table C.7-9: INVERSE is for
/// MONOCHROME1).
std::string compare_lut_shape(const Instance& instance);

/// What frames of TILED_FULL say of their places beside their order, which counts (PS3.3, C.7.6.17.3).
/// \throws SlideError where places that are all different follow each other in another order
std::string compare_places(const OpenFile& file, const Level& level);

}  // namespace slidestream::dicom
