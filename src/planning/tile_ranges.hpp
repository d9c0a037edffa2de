#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <slidestream/slide.hpp>

#include "planning/batch_tiles.hpp"

namespace slidestream {

/// Where the tiles of one level lie in their file, as far as reading them is concerned.
struct TileRanges {
  const Slide& slide;
  std::size_t level;

  /// How tile `index` is to be had, by its range alone.
  BatchTile::Source source_of(const TileRange& range) const;

  /// `CompressedBytes` of strip planning; `context` is a TileRanges. An upper bound of what `plan_reads` needs.
  static std::int64_t compressed_bytes(const void* context, std::int64_t tile_row, std::int64_t first_column,
                                       std::int64_t columns);
};

/// Places the bytes of `tiles` (index set) into a slot's room of `room` bytes that begins at `slot_offset`, and merges
/// neighbours in the file into single reads; gaps are read along while there is room for them. `block`: as far as there
/// is room, reads get the place for whole blocks of so many bytes, of the file and of the slot (`whole_blocks`).
/// \throws Error when they don't fit, which planning excludes.
void plan_reads(std::vector<ReadChunk>& chunks, std::vector<BatchTile>& tiles, const TileRanges& ranges,
                std::size_t slot_offset, std::size_t room, std::size_t block = 1);

/// Cuts chunks into parts, each of which lies in at most `most` bytes of the slot: between tiles, unless one is longer.
/// `order` becomes the tiles that have bytes, in the order of these.
void cut_parts(std::vector<ReadPart>& parts, std::vector<ReadChunk>& chunks, std::vector<std::uint32_t>& order,
               const std::vector<BatchTile>& tiles, std::size_t most);

}  // namespace slidestream
