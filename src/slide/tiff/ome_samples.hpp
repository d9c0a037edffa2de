#pragma once

#include <string>
#include <vector>

#include "slide/tiff/level_tags.hpp"
#include "slide/tiff/ome_xml.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

/// What OME-XML calls the samples of level 0's pixels. Where it contradicts itself or the tags, `warnings` get a line.
/// \param image  that it describes the slide by
SampleNames read_sample_names(const OmeImage& image, const RawTiff& raw, const RawDirectory& directory,
                              std::vector<std::string>& warnings);

}  // namespace slidestream
