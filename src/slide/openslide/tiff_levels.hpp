#pragma once

#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "slide/file.hpp"
#include "slide/tiff/raw_directory.hpp"

/// \file
/// TIFF files of which OpenSlide takes each tiled directory for a level, as its tags say: Philips and Trestle.
/// OpenSlide passes over some tags, and over what tiles say of themselves.

namespace slidestream::openslide {

/// Whether files are such, by the vendor that OpenSlide names.
bool are_levels_directories(std::string_view vendor) noexcept;

struct TiffLevels {
  RawEntry icc;                       ///< of the first level; with a count of 0: it has none
  std::vector<std::string> warnings;  ///< what OpenSlide doesn't apply, and can be told
};

/// Holds the levels to what is asked of TIFF that is read here, and to what OpenSlide applies. Reads the directories,
/// and the headers of three tiles of each level. \throws SlideError that names what would give other pixels, and what
/// `OpenBudget` does
TiffLevels check_tiff_levels(const File& file, const OpenOptions& options);

}  // namespace slidestream::openslide
