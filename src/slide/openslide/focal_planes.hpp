#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "slide/file.hpp"

/// \file
/// Focal planes of slides that OpenSlide reads. It reads one of them and doesn't say that there are others.

namespace slidestream::openslide {

// Each gives how many the slide has, and 0 if the file is damaged.

/// By the distances from the glass's centre that the directories say.
std::size_t planes_of_ndpi(const File& file);
/// By the description's dimensions.
std::size_t planes_of_leica(const File& file);
/// By the text's number of layers: VMS and VMU.
std::size_t planes_of_vms(const File& file);

/// How many focal planes OpenSlide's properties name; 0 if none. Of Ventana's the number of layers, of MIRAX the values
/// of the hierarchy of focus levels, without those that are made of all planes.
/// \param property  gives the value of a property by its name; empty: there is none
std::size_t planes_by_properties(const std::function<std::string(const std::string&)>& property);

}  // namespace slidestream::openslide
