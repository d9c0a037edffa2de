#pragma once

#include <cstddef>
#include <functional>
#include <slidestream/slide.hpp>
#include <vector>

#include "slide/tile_job.hpp"

/// \file
/// Tiles whose red, green and blue are grey tiles of their own, whether in one directory or in three.

namespace slidestream {

constexpr std::size_t colour_planes = 3;

/// What stands for such a tile in `LevelCoding::tiles`: it has no place of its own, and its container reads it.
constexpr TileRange in_planes = {1, 1};

/// Decodes such a tile. Takes the memory for all of its planes at once.
/// \param read_plane  writes the wanted rectangle of a plane, as luminance; \throws TileError, and then `decode_planes`
///   does, naming the plane
void decode_planes(const TileJob& job, const std::function<void(std::size_t plane, const HostPixels& out)>& read_plane);

/// Compressed bytes of a plane's tile. \param coded  the plane's level in the file
/// \throws TileError where it is missing, lies outside the file or is too long
std::vector<std::byte> read_plane_tile(const Slide& slide, const Level& coded, const TileRange& range);

}  // namespace slidestream
