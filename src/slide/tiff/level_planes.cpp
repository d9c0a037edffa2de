#include "slide/tiff/level_planes.hpp"

#include <algorithm>
#include <utility>

#include "slide/decode_memory.hpp"
#include "slide/tiff/plane_tiles.hpp"
#include "slide/tile_bytes.hpp"

namespace slidestream {
namespace {

using Tiles = std::vector<TileRange>;

Tiles::const_iterator tile_of(const Tiles& tiles, std::size_t number) {
  return tiles.begin() + static_cast<std::ptrdiff_t>(number);
}

/// Compressed bytes of a plane's longest tile that is read.
std::uint64_t longest_tile(const Level& level, const Tiles& tiles) {
  std::uint64_t longest = 0;
  for (const TileRange& tile : tiles) {
    if (!claims_too_many_bytes(level, tile)) longest = std::max(longest, tile.length);
  }
  return longest;
}

void take_alone(LevelCoding& coding, std::size_t tiles, LevelPlanes& planes) {
  const std::size_t first = static_cast<std::size_t>(coding.first_sample) * tiles;
  planes.first_tile = first;
  coding.tiles = Tiles(tile_of(coding.tiles, first), tile_of(coding.tiles, first + tiles));
  coding.first_sample = 0;
}

void combine(Level& level, LevelCoding& coding, std::size_t tiles, LevelPlanes& planes) {
  planes.level = level;
  planes.level.colour = Colour::grey;
  planes.coding = std::move(coding);
  planes.coding.samples = 1;
  // Alpha is behind them.
  planes.coding.tiles.resize(colour_planes * tiles);
  planes.coding.tiles.shrink_to_fit();
  level.codec = Codec::planes;
  coding = LevelCoding();
  coding.samples = colour_planes;
  coding.plane_codec = planes.level.codec;
  const Tiles& all = planes.coding.tiles;
  for (const TileRange& tile : all) coding.coded_bytes += tile.length;
  coding.plane_bytes = decoding_bytes(planes.level, planes.coding) + longest_tile(planes.level, all);
  coding.tiles.reserve(tiles);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    bool is_missing = true;
    for (std::size_t i = 0; i < colour_planes; ++i) is_missing = is_missing && all[i * tiles + tile].length == 0;
    coding.tiles.push_back(is_missing ? TileRange{} : in_planes);
  }
}

}  // namespace

LevelPlanes take_planes(Level& level, LevelCoding& coding) {
  LevelPlanes planes;
  const auto tiles = static_cast<std::size_t>(level.columns * level.rows);
  coding.tiles_say_colour = false;  // a frame of one component has none
  if (level.colour == Colour::rgb) {
    combine(level, coding, tiles, planes);
  } else {
    take_alone(coding, tiles, planes);
    coding.samples = 1;
  }
  return planes;
}

}  // namespace slidestream
