#pragma once

#include <filesystem>
#include <functional>

#include "report/picture.hpp"

namespace slidestream::report {

/// Three cuts through the middle of a volume, across its axes z, y and x, in one picture: two above, one below. Samples
/// are grey, black and white for all but the lowest and the highest two of a thousand. Larger coordinates are above and
/// at the right; axes are those of the file. Sides are as long as the voxels say. Of the samples those are kept that
/// are shown. \param give_up  as `NiftiFile::read` has it. \throws SlideError where it can't be read, or has more than
/// 2^28 voxels; StoppedError
ColourImage read_volume_cuts(const std::filesystem::path& scan, const std::function<bool()>& give_up = {});

/// The same with labels over it: of all labels but 0 the class's colour, half of it.
/// \throws SlideError also where the labels have another size
ColourImage read_volume_cuts(const std::filesystem::path& scan, const std::filesystem::path& labels,
                             const std::function<bool()>& give_up = {});

}  // namespace slidestream::report
