#pragma once

#include "slide/slide_impl.hpp"

namespace slidestream {

/// Finds levels and associated images in the slide's directories, and fills all of `slide` but its file.
/// \throws SlideError.
void read_directories(Slide::Impl& slide, const OpenOptions& options);

}  // namespace slidestream
