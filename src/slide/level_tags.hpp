#pragma once

#include "slide/raw_directory.hpp"
#include "slide/slide_impl.hpp"
#include "slide/tiff_file.hpp"

namespace slidestream {

/// Reads and checks everything about the level of one directory, which becomes libtiff's current one.
/// \throws SlideError that names the tag, its value, and what is supported.
void read_level(const RawTiff& raw, const RawDirectory& directory, TiffFile& tiff, const File& file,
                const OpenOptions& options, Level& level, LevelDetail& detail);

}  // namespace slidestream
