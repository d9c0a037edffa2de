#pragma once

#include "slide/file.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

/// Refuses planes that lie behind each other under one directory, as ImageJ writes stacks above 4 GB and tifffile with
/// `truncate`: where the directory's description says several, and the file has the bytes of the second one.
/// \throws SlideError that says how many there are.
void refuse_stacked_planes(const File& file, const RawTiff& raw, const RawDirectory& directory);

}  // namespace slidestream
