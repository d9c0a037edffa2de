#pragma once

#include <vector>

#include "slide/dicom/instance_level.hpp"
#include "slide/pixel_size.hpp"
#include "slide/slide_impl.hpp"

/// \file
/// The size of a slide's pixels: PixelSpacing, or the imaged volume.

namespace slidestream::dicom {

/// Writes the size of the largest image's pixels into `info`, and what contradicts it into its warnings.
/// \param images  each by its files, the largest first
/// \return PixelSpacing of the largest image, where it counts
SaidPixelSize read_pixel_size(const std::vector<std::vector<OpenFile*>>& images, SlideInfo& info);

/// Compares PixelSpacing of the slide's last level with that of its largest image, by their sizes. A level's sides may
/// be rounded, or padded to whole tiles.
/// \param largest  what `read_pixel_size` returned
/// \return whether the slide has a line about it
bool compare_spacing(Slide::Impl& slide, const SaidPixelSize& largest, const Instance& level);

}  // namespace slidestream::dicom
