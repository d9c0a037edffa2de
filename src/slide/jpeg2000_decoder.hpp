#pragma once

#include <cstddef>
#include <span>

#include "slide/tile_job.hpp"

namespace slidestream {

/// JPEG 2000 tiles to luminance with OpenJPEG: component 0 alone where it is Y (irreversible colour transform, YCbCr
/// or grey), else by the formula from red, green and blue. One thread.
/// \throws TileError for what OpenJPEG or the codestream's structure shows to be damaged, for samples that aren't 8
/// bits
///   unsigned, and for an image of another size.
void decode_jpeg2000(const TileJob& job, std::span<const std::byte> bytes);

}  // namespace slidestream
