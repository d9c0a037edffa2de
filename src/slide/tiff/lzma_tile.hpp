#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace slidestream {

/// The largest dictionary of liblzma's presets, in bytes.
inline constexpr std::uint64_t most_lzma_dictionary = std::uint64_t{64} << 20;

/// Refuses a tile of LZMA that declares a dictionary larger than those of liblzma's presets, and than its samples:
/// liblzma takes the memory that a block declares before it decodes the block, up to 4 GiB. Other damage is left to
/// liblzma.
/// \param sample_bytes  of the tile. \throws TileError
void check_lzma_tile(std::span<const std::byte> tile, std::uint64_t sample_bytes);

}  // namespace slidestream
