#include "stages/images/copied_tiles.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "slide/copied_tiles.hpp"

namespace slidestream {

CopiedTiles::CopiedTiles(const Batch& batch, CopiedLevelPtr level, std::int64_t& at)
    : level_(std::move(level)),
      first_row_(batch.strip.first_tile_row),
      columns_(batch.slide->slide->info().levels[batch.slide->level].columns) {
  const LevelCoding& coding = coding_of(*batch.slide->slide, batch.slide->level);
  std::size_t bytes = 0;
  for (const BatchTile& tile : batch.tiles) bytes += tile.length + 2;
  bytes_.reserve(bytes);
  places_.reserve(batch.tiles.size());
  for (const BatchTile& tile : batch.tiles) {
    at = tile.index;
    const std::size_t begin = bytes_.size();
    const bool there = tile.source == BatchTile::Source::file && !tile.bad;
    if (there) append_copied_tile(bytes_, *level_, coding, batch.slot.memory().subspan(tile.offset, tile.length));
    places_.push_back({begin, bytes_.size() - begin});
  }
}

std::span<const std::byte> CopiedTiles::tile(TileIndex index) const {
  const Place& place = places_.at(static_cast<std::size_t>((index.row - first_row_) * columns_ + index.column));
  return place.length == 0 ? std::span(level_->white) : std::span(bytes_).subspan(place.offset, place.length);
}

void put_below(std::vector<PyramidTile>& tiles, int levels, const CopiedTiles& copied, const PyramidLayout& layout) {
  for (PyramidTile& tile : tiles) tile.level += levels;
  std::erase_if(tiles, [&](const PyramidTile& tile) { return tile.level >= layout.levels(); });
  std::vector<PyramidTile> all;
  for (std::int64_t row = copied.first_row(); row < copied.end_row(); ++row) {
    for (std::int64_t column = 0; column < layout.columns(0); ++column) {
      all.emplace_back().index = {column, row};
    }
  }
  std::ranges::move(tiles, std::back_inserter(all));
  tiles = std::move(all);
}

}  // namespace slidestream
