#pragma once

#include <cstddef>

#include "slide/file.hpp"

/// \file
/// Focal planes of slides that OpenSlide reads. It reads one of them and doesn't say that there are others.

namespace slidestream::openslide {

// Each gives how many the slide has, and 0 if the file is damaged.

/// By the distances from the glass's centre that the directories say.
std::size_t planes_of_ndpi(const File& file);
/// By the description's dimensions.
std::size_t planes_of_leica(const File& file);
/// By the text's number of layers: VMS and VMU.
std::size_t planes_of_vms(const File& file);

}  // namespace slidestream::openslide
