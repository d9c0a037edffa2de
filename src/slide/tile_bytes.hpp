#pragma once

#include <cstdint>
#include <slidestream/slide.hpp>

namespace slidestream {

/// Whether a tile of a level claims more bytes than its pixels could need. No encoder needs 16 a pixel for 8-bit
/// samples, however unfit they are for its codec: such a tile is damaged, and must not decide how much memory is taken.
constexpr bool claims_too_many_bytes(const Level& level, const TileRange& range) noexcept {
  constexpr std::uint64_t most_bytes_a_pixel = 16;
  constexpr std::uint64_t most_header_bytes = 1 << 20;
  const auto pixels = static_cast<std::uint64_t>(level.tile_width * level.tile_height);
  return range.length > pixels * most_bytes_a_pixel + most_header_bytes;
}

}  // namespace slidestream
