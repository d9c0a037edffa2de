#pragma once

#include <cstddef>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace slidestream {

/// Fills format, properties, mpp and magnification from level 0's ImageDescription: Aperio's "key = value" pairs
/// between bars, or OME-XML. Text that is neither gives the description's first line only.
void read_description(std::string_view description, SlideInfo& info);

/// Planes of pixels that OME-XML declares for its first image.
struct OmePlanes {
  std::size_t count = 1;           ///< of all channels, depths and times
  std::vector<std::string> names;  ///< of the channels; empty where not all have one
};

/// One plane for what is no OME-XML. \param samples  per pixel of the image, for a text that doesn't say how many
/// belong to a channel
OmePlanes ome_planes(std::string_view description, std::size_t samples);

/// Which of a file's images a description belongs to. The first is the slide in nearly all files, whose description may
/// hold any word: there the name has to come first.
enum class DescriptionPlace { first_image, further_image };

/// The name that an ImageDescription gives to an image that is no level: label, macro, overview, barcode or thumbnail,
/// as a word in any case; empty when it gives none. XML and what stands behind Aperio's first bar aren't looked at.
std::string associated_name(std::string_view description, DescriptionPlace place);

}  // namespace slidestream
