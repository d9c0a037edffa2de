#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "slide/pixel_size.hpp"
#include "slide/tiff/candidate.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

/// What a directory's resolution tags say. Above 20 um per pixel it is a printing resolution, which says nothing of the
/// slide. The unit that ImageJ's description names goes before ResolutionUnit, unless only that gives a slide's pixels;
/// where the two differ, a warning says so. ImageJ's yunit is that of the height. What can't be what they mean is
/// passed over, and becomes a warning.
SaidPixelSize size_by_resolution(const RawTiff& raw, const RawDirectory& directory, std::string_view description,
                                 std::vector<std::string>& warnings);

/// Adds a line where resolutions that could be a slide's have no unit of length, whether inches or centimetres are
/// meant. For slides without another pixel size.
void warn_of_lacking_unit(const RawTiff& raw, const RawDirectory& directory, std::vector<std::string>& warnings);

/// Adds a line about the first smaller level whose resolution tags contradict by its size those of the largest image,
/// which count. None where all of them repeat the largest image's.
/// \param levels  of `info`, in its order
/// \param description  the largest image's, for its unit
void compare_resolutions(const RawTiff& raw, const std::vector<const Candidate*>& levels, std::string_view description,
                         const SaidPixelSize& said, SlideInfo& info);

/// Adds a line about the first smaller level whose description has an MPP, or AppMag, that is neither the largest
/// image's nor follows from it by the level's size. The largest image's counts.
/// \param levels  of `info`, in its order
/// \param description  the largest image's
void compare_descriptions(const RawTiff& raw, const std::vector<const Candidate*>& levels, std::string_view description,
                          SlideInfo& info);

}  // namespace slidestream
