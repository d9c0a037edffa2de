#pragma once

#include <vector>

#include "slide/dicom/instance_level.hpp"
#include "slide/open_budget.hpp"
#include "slide/slide_impl.hpp"

namespace slidestream::dicom {

/// Adds an image to a slide: its level, where its tiles lie, and a line for each contradiction in it.
/// \param files  of the image, by their numbers; they go to the slide
/// \throws SlideError where it isn't supported, or its parts don't make one image
void read_image(Slide::Impl& slide, const OpenOptions& options, OpenBudget& budget,
                const std::vector<OpenFile*>& files);

}  // namespace slidestream::dicom
