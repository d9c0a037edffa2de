#pragma once

#include <cstdint>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/dicom/instance_level.hpp"

/// \file
/// Lines about an instance that says one thing in two places, which differ. They are empty where these agree.

namespace slidestream::dicom {

/// PresentationLUTShape against PhotometricInterpretation, which counts. INVERSE is for MONOCHROME1 (PS3.3, table
/// C.7-9).
std::string compare_lut_shape(const Instance& instance);

/// RescaleSlope and RescaleIntercept against 1 and 0, which whole-slide images must have (PS3.3, C.8.12.4). Pixels are
/// read as they are stored.
std::string compare_rescale(const Instance& instance);

/// The length of pixels without compression against the frames, which count; frames that fit into it. Some size may be
/// wrong, so that rows lie elsewhere.
std::string compare_length(const Instance& instance);

/// ImageOrientationSlide against rows along -Y and columns along -X, as scanners store them (PS3.3, C.8.12.2.1.1): the
/// image may be mirrored, or turned. Pixels are read as they are stored.
std::string compare_orientation(const Instance& instance);

/// The origin of each level on the glass against that of the largest one. It may be a pixel of the level off, and half
/// of one more, as some writers mean a pixel's centre. Levels are read as if they had one origin.
/// \param images  each by its files, the largest first. \return a line about the first such level
std::string compare_origins(const std::vector<std::vector<OpenFile*>>& images);

/// Places that frames of TILED_FULL say against their order, which counts (PS3.3, C.7.6.17.3).
/// \throws SlideError where places that are all different follow each other in another order
std::string compare_places(const OpenFile& file, const Level& level);

/// DimensionIndexValues of frames that aren't TILED_FULL against their places, which count: one number along an axis
/// stands for two of them.
std::string compare_indices(const Instance& instance);

/// FrameType of an image's frames against its ImageType, which counts.
std::string compare_frame_type(const Instance& instance);

/// Frames at one place: the last one is shown.
/// \param first_tile  where the first such frame is
std::string compare_doubles(std::int64_t doubles, std::int64_t first_tile, const Level& level);

/// The flavour of an image against its size: one that is larger than the largest level, of its shape, may be the slide.
/// Macro images of small regions are larger, too, and have another shape.
std::string compare_flavours(const Instance& other, const Instance& largest_level);

/// Whether two instances show different optical paths: by the identifiers of their frames, or by the identifier or
/// wavelength of OpticalPathSequence. Descriptions are free text. What only one of them says is no difference.
bool have_different_paths(const Instance& a, const Instance& b);

}  // namespace slidestream::dicom
