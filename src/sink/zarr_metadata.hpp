#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sink/image_sink.hpp"

/// \file
/// The JSON files of an OME-Zarr image: https://ngff.openmicroscopy.org/0.4/ on zarr's version 2, and /0.5/ on
/// version 3.

namespace slidestream {

/// The file of `zarr_attributes` as long as levels aren't there: it says whose the folder is, and names no image.
std::pair<std::string, std::string> zarr_mark(const ImageOptions& options);

/// The image's own files, and those of each level in a folder of its number: (path, text). Axes are c, y, x; chunks are
/// tiles of one channel. In version 3 a shard is a row of tiles of one channel, its index at its end. Windows for
/// viewers show the range of the type: of float32 0 to 1.
std::vector<std::pair<std::string, std::string>> zarr_metadata(const PyramidLayout& layout,
                                                               const ImageDescription& description,
                                                               const ImageOptions& options);

/// The one of these files that has the windows for viewers, with windows that show `values`, one per channel.
std::pair<std::string, std::string> zarr_attributes(const PyramidLayout& layout, const ImageDescription& description,
                                                    const ImageOptions& options, const std::vector<ValueRange>& values);

}  // namespace slidestream
