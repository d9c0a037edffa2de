#pragma once

#include <cstddef>
#include <span>

namespace slidestream {

/// Refuses a tile of LERC that isn't of its second kind, which libtiff writes. The first kind holds floats, which no
/// level has, and liblerc takes 8 bytes for each pixel that it claims before libtiff can look at its size: up to 3 GiB.
/// \param packing  as TIFFTAG_LERC_ADD_COMPRESSION. \throws TileError
void check_lerc_tile(std::span<const std::byte> tile, int packing);

}  // namespace slidestream
