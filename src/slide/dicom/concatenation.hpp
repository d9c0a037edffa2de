#pragma once

#include <string>
#include <vector>

#include "slide/dicom/instance_level.hpp"
#include "slide/level_coding.hpp"

/// \file
/// Images of several files: what each part says of the whole.

namespace slidestream::dicom {

/// \param files  of one image, by their numbers
/// \throws SlideError unless all parts are there, each once, and those that count them agree
void check_parts(const std::vector<OpenFile*>& files);

/// Refuses a part that says otherwise than the first how its frames are organised.
void check_organisation(const OpenFile& part, const Instance& first);

/// ImageOrientationSlide of one part against another's: neither counts, as pixels are read as they are stored. A line,
/// or nothing.
std::string compare_orientations(const std::vector<OpenFile*>& files);

/// A line where no part says how many there are, and tiles lack frames: those of the last part, perhaps. Frames that go
/// row by row are counted elsewhere.
std::string compare_count(const std::vector<OpenFile*>& files, const Level& level, const LevelCoding& coding);

}  // namespace slidestream::dicom
