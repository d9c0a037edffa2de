#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/slide.hpp>

#include "slide/level_coding.hpp"

namespace slidestream {

/// Planes of a level whose samples lie apart (PlanarConfiguration 2): each has tiles of one sample, those of the second
/// sample behind those of the first. All is empty where samples are interleaved.
struct LevelPlanes {
  std::uint64_t first_tile = 0;  ///< of a plane that is read alone: tiles of other planes in front of it
  Level level;                   ///< a plane of red, green and blue, as a grey level
  LevelCoding coding;            ///< of the same; its tiles are those of red, of green, and of blue

  std::uint64_t kept_bytes() const noexcept { return coding.tiles.capacity() * sizeof(TileRange); }
};

/// Makes a level of `coding.samples` planes one that tiles are read of. `coding` has the tiles of all planes. Red,
/// green and blue are combined: the codec becomes `planes`. Grey, or a channel that is chosen, is a plane by itself.
LevelPlanes take_planes(Level& level, LevelCoding& coding);

}  // namespace slidestream
