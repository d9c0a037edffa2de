#pragma once

#include <slidestream/slide.hpp>
#include <string>

#include "slide/level_coding.hpp"
#include "slide/open_budget.hpp"
#include "slide/slide_files.hpp"

namespace slidestream::dicom {

/// Compares what PhotometricInterpretation, `said`, makes of a level's colours with the head of its first frame that is
/// there. PhotometricInterpretation counts, but for JPEG whose components are sampled apart: RGB never is, and
/// `level.colour` becomes YCbCr. \returns a line that names both where they contradict each other, else an empty text.
/// A frame that can't be read says nothing: it is a bad tile. \throws what reading of `files` and `budget` does
std::string settle_colour(Level& level, const std::string& said, const LevelCoding& coding, const SlideFiles& files,
                          OpenBudget& budget);

}  // namespace slidestream::dicom
