#pragma once

#include <slidestream/slide.hpp>
#include <span>

#include "slide/dicom/instance.hpp"
#include "slide/pixel_size.hpp"

/// \file
/// What smaller levels say of the size of the largest image's pixels.

namespace slidestream::dicom {

/// The size of the largest image's pixels by the PixelSpacing of the others, divided by their factors. None where they
/// differ by more than 2 % and 2 pixels, with a warning. \param images  the largest first
SaidPixelSize size_by_levels(std::span<const Instance* const> images, SlideInfo& info);

/// Whether the others say the PixelSpacing of the largest image, which by their sizes isn't theirs: writers that know
/// no size fill in one for all. \param images  the largest first
bool repeat_spacing(std::span<const Instance* const> images);

/// How many times larger pixels of an image are by PixelSpacing than those of a larger one, if that is 2, 4, 8, ...
/// along both axes; else 0.
std::int64_t factor_by_spacing(const Instance& larger, const Instance& smaller);

/// Adds a warning about the first image whose imaged volume isn't that of the largest one, which counts, by more than
/// 2 % and 2 of its pixels. \param images  the largest first
void compare_volumes(std::span<const Instance* const> images, SlideInfo& info);

}  // namespace slidestream::dicom
