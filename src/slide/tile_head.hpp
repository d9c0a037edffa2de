#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <vector>

#include "slide/level_coding.hpp"

namespace slidestream {

/// What `parse` makes of the front of a tile's coded bytes, of which more are read until they are enough: nearly always
/// 4 KiB are, and 16 MiB are the most. Nothing where they never are. `read(offset, bytes)` fills the bytes from the
/// slide. `parse(front)` throws TileError where the front is cut or damaged.
template <class Read, class Parse>
auto parse_tile_head(const TileRange& tile, const LevelCoding& coding, const Read& read, const Parse& parse)
    -> std::optional<decltype(parse(std::span<const std::byte>()))> {
  constexpr std::array<std::uint64_t, 3> head_bytes = {std::uint64_t{1} << 12, std::uint64_t{1} << 16,
                                                       std::uint64_t{1} << 24};
  std::vector<std::byte> bytes;
  std::vector<std::byte> joined;
  for (const std::uint64_t most : head_bytes) {
    bytes.resize(static_cast<std::size_t>(std::min(most, tile.length)));
    read(tile.offset, std::span(bytes));
    const bool is_whole = bytes.size() == tile.length;
    try {
      // A tile in several items has no front: all of it is wanted.
      const std::span<const std::byte> coded =
          is_whole ? coded_bytes(coding, bytes, joined) : coded_front(coding, bytes, tile.length);
      if (!coded.empty()) return parse(coded);
    } catch (const TileError&) {
      // It is cut, or damaged.
    }
    if (is_whole) break;
  }
  return {};
}

}  // namespace slidestream
