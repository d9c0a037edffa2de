#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "slide/tiff/candidate.hpp"

namespace slidestream {

/// Names the thumbnail and the label in a file of Aperio's where no description does, and marks its other reduced
/// images as no levels. Some of its scanners describe neither label nor macro image: the type of a label is 1.
/// - The thumbnail is the first image in strips that is described as one. Else it is the second image, if that is in
///   strips, has the slide's shape and isn't called reduced.
/// - The label is the only image in strips of type 1. Where no thumbnail is known, a second image of the slide's shape
///   may be either, and gets no name. Nothing becomes a second label.
/// \param main  the main chain
/// \param slide  the number of the slide's directory in it
void name_aperios_images(std::vector<Candidate>& main, std::size_t slide);

/// Lines about images whose name by their description isn't the one that their NewSubfileType says, and about images
/// that have tiles and the size of a level, and are called something else.
/// \param main  the main chain, with all names
/// \param slide  the number of the slide's directory in it
std::vector<std::string> lines_of_types(const std::vector<Candidate>& main, std::size_t slide);

/// What the planes of the slide are called by their focus; nothing unless all of them say it.
/// \param main  the main chain
/// \param planes  the numbers of their directories in it
std::vector<std::string> names_of_focuses(const std::vector<Candidate>& main, const std::vector<std::size_t>& planes);

/// A warning about images in a file of Aperio's that nothing names.
/// \param first  what it is called here
/// \param more  how many others there are
std::string warning_of_unnamed(const std::string& first, std::size_t more);

}  // namespace slidestream
