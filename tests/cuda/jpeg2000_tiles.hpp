#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "cuda/jpeg_tiles.hpp"

/// \file
/// JPEG 2000 tiles for tests of the GPU's decoder, and the CPU decoder's verdict on them.

namespace slidestream::test {

/// Which of a row of tiles are made: to encode one takes longer than most tests of it.
struct WhichTiles {
  std::size_t every = 1;
  std::size_t most = static_cast<std::size_t>(-1);
  int most_pixels = 1 << 30;  ///< of one
};

/// Every progression, with layers, precincts, tile-parts and markers; sizes of tiles and code-blocks; both transforms;
/// subsampled components; rates from hardly any data to all bit planes. None larger than 256 pixels, all for the
/// device.
std::vector<NamedTile> jpeg2000_tiles_of_every_kind(const WhichTiles& which = {});

/// The same of tiles that are larger, up to 1024 pixels, or have many code-blocks.
std::vector<NamedTile> jpeg2000_large_tiles(const WhichTiles& which = {});

/// Tiles that the device leaves to the CPU, each for a reason of its own.
std::vector<NamedTile> jpeg2000_tiles_for_the_cpu();

/// The tiles of a slide's JPEG 2000 levels, as they stand in the file.
std::vector<NamedTile> jpeg2000_tiles_of_slide(const std::filesystem::path& path);

/// A tile with some bytes changed, mostly of the packets, without a change of their number of bytes: those that the
/// headers don't give away.
Bytes jpeg2000_mutant(const Bytes& tile, std::mt19937& random);

/// All of a tile through the CPU's decoder, in the tile's size, white beyond the frame; nothing when it is bad.
std::optional<std::vector<std::uint8_t>> decode_with_openjpeg(std::span<const std::byte> bytes,
                                                              const TileDemand& demand);

}  // namespace slidestream::test
