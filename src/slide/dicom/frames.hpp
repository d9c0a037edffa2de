#pragma once

#include <vector>

#include "slide/dicom/instance.hpp"

namespace slidestream::dicom {

/// Where the frames of an instance lie in its file, in their order; items and all where they are encapsulated. By the
/// extended offset table, else by the basic one, else by the items themselves, of which each is one frame then.
/// \throws SlideError when the frames and a table don't agree, or pixels are missing
std::vector<TileRange> frame_ranges(Reader& reader, const Instance& instance);

}  // namespace slidestream::dicom
