#pragma once

#include <cstddef>
#include <span>

#include "slide/tile_job.hpp"

namespace slidestream {

/// Whether this build has CharLS, which decodes JPEG-LS.
bool decodes_jpegls() noexcept;

/// Decodes a tile of JPEG-LS (ISO/IEC 14495-1) with 8-bit samples, lossless or near-lossless. Its frame must have the
/// size of the level's tiles and as many components as the level has samples. \throws TileError where it hasn't, or is
/// damaged.
void decode_jpegls(const TileJob& job, std::span<const std::byte> bytes);

}  // namespace slidestream
