#pragma once

#include <slidestream/slide.hpp>
#include <string>

#include "slide/level_coding.hpp"
#include "slide/open_budget.hpp"
#include "slide/slide_files.hpp"

namespace slidestream::dicom {

/// Compares SamplesPerPixel, and what PhotometricInterpretation, `said`, makes of a level's colours, with the head of
/// the first, a middle and the last of its frames that are there. This is for the line alone: each frame's colour is
/// found where it is decoded (`colour_of_frame`). \returns a line that names both where they contradict each other,
/// else an empty text. A frame that can't be read says nothing: it is a bad tile. \throws what reading of `files` and
/// `budget` does
std::string compare_colour(const Level& level, const std::string& said, const LevelCoding& coding,
                           const SlideFiles& files, OpenBudget& budget);

}  // namespace slidestream::dicom
