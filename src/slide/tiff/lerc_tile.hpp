#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace slidestream {

/// What the level says of a tile. A sample less is stored where a mask of pixels is the opacity.
struct LercTile {
  std::uint64_t width, height, samples;
};

/// Refuses a tile of LERC unless it is of the second kind, which libtiff writes, has the size, the samples and the
/// length that it should have, and counts its values right. The first kind holds floats, which no level has, and
/// liblerc takes 8 bytes for each pixel that it claims before libtiff can look at its size: up to 3 GiB. Where a block
/// has fewer values than pixels, or a value that its table lacks, liblerc 4.0 to 4.2 read behind their own memory.
/// \param packing  as TIFFTAG_LERC_ADD_COMPRESSION. \throws TileError
void check_lerc_tile(std::span<const std::byte> bytes, int packing, const LercTile& tile);

}  // namespace slidestream
