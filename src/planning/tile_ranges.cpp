#include "planning/tile_ranges.hpp"

#include <algorithm>
#include <utility>

#include <slidestream/error.hpp>

#include "slide/tile_bytes.hpp"

namespace slidestream {
namespace {

constexpr std::size_t kAlignment = 64;
/// A gap up to this is cheaper to read along than to skip.
constexpr std::uint64_t kMostGap = 64 << 10;

std::size_t aligned(std::size_t bytes, std::size_t to = kAlignment) { return (bytes + to - 1) / to * to; }

}  // namespace

BatchTile::Source TileRanges::source_of(const TileRange& range) const {
  if (range.length == 0) return BatchTile::Source::missing;
  if (!slide.contains(range)) return BatchTile::Source::outside_file;
  if (claims_too_many_bytes(slide.coded_level(level), range)) return BatchTile::Source::too_long;
  return BatchTile::Source::file;
}

std::int64_t TileRanges::compressed_bytes(const void* context, std::int64_t tile_row, std::int64_t first_column,
                                          std::int64_t columns) {
  const TileRanges& self = *static_cast<const TileRanges*>(context);
  const std::int64_t first = tile_row * self.slide.info().levels[self.level].columns + first_column;
  std::uint64_t bytes = 0;
  // Lengths lie inside the file and a file is shorter than 2^62: the sum of up to 2^16 of them can't wrap silently,
  // because it is cut off here.
  constexpr std::uint64_t enough = std::uint64_t{1} << 62;
  for (std::int64_t i = first; i < first + columns && bytes < enough; ++i) {
    const TileRange range = self.slide.tile(self.level, i);
    if (self.source_of(range) == BatchTile::Source::file) bytes += std::min(range.length, enough) + 2 * kAlignment;
  }
  return static_cast<std::int64_t>(std::min(bytes, enough));
}

void plan_reads(std::vector<ReadChunk>& chunks, std::vector<BatchTile>& tiles, const TileRanges& ranges,
                std::size_t slot_offset, std::size_t room, std::size_t block) {
  chunks.clear();
  std::vector<std::uint32_t> order;
  order.reserve(tiles.size());
  std::vector<TileRange> where(tiles.size());
  std::size_t needed = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    where[i] = ranges.slide.tile(ranges.level, tiles[i].index);
    tiles[i].source = ranges.source_of(where[i]);
    tiles[i].length = 0;
    if (tiles[i].source != BatchTile::Source::file) continue;
    tiles[i].length = static_cast<std::size_t>(where[i].length);
    needed += aligned(tiles[i].length) + kAlignment;
    order.push_back(static_cast<std::uint32_t>(i));
  }
  if (needed > room) throw Error("internal: a strip's tiles don't fit its slot");
  std::size_t spare = room - needed;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return where[a].offset != where[b].offset ? where[a].offset < where[b].offset : a < b;
  });
  std::size_t end = slot_offset;
  for (const std::uint32_t i : order) {
    const TileRange& range = where[i];
    if (!chunks.empty()) {
      ReadChunk& chunk = chunks.back();
      const std::uint64_t chunk_end = chunk.file_offset + chunk.length;
      if (range.offset <= chunk_end || range.offset - chunk_end <= std::min<std::uint64_t>(kMostGap, spare)) {
        if (range.offset > chunk_end) spare -= static_cast<std::size_t>(range.offset - chunk_end);
        const std::uint64_t merged_end = std::max(chunk_end, range.offset + range.length);
        chunk.length = static_cast<std::size_t>(merged_end - chunk.file_offset);
        tiles[i].offset = chunk.slot_offset + static_cast<std::size_t>(range.offset - chunk.file_offset);
        end = chunk.slot_offset + chunk.length;
        continue;
      }
    }
    // What is before the blocks, in the first and in the last.
    const bool whole_blocks = block > 1 && spare >= 3 * block;
    std::size_t offset = aligned(end);
    if (!chunks.empty() && chunks.back().whole_blocks) offset = aligned(end, block);
    if (whole_blocks) {
      offset = aligned(offset, block) + static_cast<std::size_t>(range.offset % block);
      spare -= 3 * block;
    }
    chunks.push_back({range.offset, offset, tiles[i].length, whole_blocks});
    tiles[i].offset = offset;
    end = offset + tiles[i].length;
  }
}

void cut_parts(std::vector<ReadPart>& parts, std::vector<ReadChunk>& chunks, std::vector<std::uint32_t>& order,
               const std::vector<BatchTile>& tiles, std::size_t most) {
  order.clear();
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (tiles[i].source == BatchTile::Source::file) order.push_back(static_cast<std::uint32_t>(i));
  }
  const auto offset_of = [&tiles](std::uint32_t tile) { return tiles[tile].offset; };
  std::ranges::stable_sort(order, {}, offset_of);

  parts.clear();
  std::vector<ReadChunk> pieces;
  pieces.reserve(chunks.size());
  std::size_t begin = 0;  // of the last part
  const auto close = [&] {
    if (!parts.empty()) parts.back().end = pieces.size();
  };
  const auto open = [&](std::size_t at) {
    close();
    parts.push_back({pieces.size(), pieces.size(), 0, 0});
    begin = at;
  };
  for (ReadChunk rest : chunks) {
    while (rest.length > 0) {
      const std::size_t end = rest.slot_offset + rest.length;
      if (parts.empty()) open(rest.slot_offset);
      if (end - begin <= most) {
        pieces.push_back(rest);
        break;
      }
      // The last tile that begins where the part may end.
      const auto behind = std::ranges::upper_bound(order, begin + most, {}, offset_of);
      std::size_t cut = behind == order.begin() ? 0 : offset_of(*(behind - 1));
      if (cut <= rest.slot_offset) {
        if (rest.slot_offset > begin) {
          open(rest.slot_offset);
          continue;
        }
        cut = begin + most;
      }
      cut = std::min(cut, end);
      ReadChunk head = rest;
      head.length = cut - rest.slot_offset;
      pieces.push_back(head);
      rest.file_offset += head.length;
      rest.slot_offset += head.length;
      rest.length -= head.length;
      if (rest.length > 0) open(rest.slot_offset);
    }
  }
  close();
  chunks = std::move(pieces);
  std::size_t tile = 0;
  for (ReadPart& part : parts) {
    const ReadChunk& last = chunks[part.end - 1];
    part.first_tile = tile;
    while (tile < order.size() && offset_of(order[tile]) < last.slot_offset + last.length) ++tile;
    part.end_tile = tile;
  }
}

}  // namespace slidestream
