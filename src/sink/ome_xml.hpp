#pragma once

#include <string>

#include "sink/image_sink.hpp"

namespace slidestream {

/// The description of an OME-TIFF file of one image, valid against the schema of 2016-06
/// (http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd). UTF-8; what isn't, and what XML can't hold, is
/// U+FFFD. It depends on `description` alone.
std::string ome_xml(const ImageDescription& description);

}  // namespace slidestream
