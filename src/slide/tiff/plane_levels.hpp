#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "slide/tiff/candidate.hpp"

/// \file
/// Smaller levels of slides that have several planes.

namespace slidestream {

/// Which plane an image of the main chain belongs to, as an index into `planes`; nothing where nothing says it.
/// By its focus, where one plane alone has it and all say theirs. Else by the order of directories, where as many
/// images in tiles have its size as there are planes. \param planes  numbers of the slide's directories in the main
/// chain
std::optional<std::size_t> plane_of(const std::vector<Candidate>& main, const std::vector<std::size_t>& planes,
                                    const Candidate& image);

/// Whether an image is a smaller level of a plane that isn't read: it belongs to that plane, and a level that is read
/// has its size, or it says its focus and has the size of a level.
/// \param plane  that is read, as an index into `planes`
/// \param levels  that are read, the largest first
bool is_level_of_other_plane(const std::vector<Candidate>& main, const std::vector<std::size_t>& planes,
                             std::size_t plane, const std::vector<const Candidate*>& levels, const Candidate& image);

}  // namespace slidestream
