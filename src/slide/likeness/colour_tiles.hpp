#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <slidestream/slide.hpp>
#include <utility>

#include "slide/likeness/level_picture.hpp"

// Colours of two levels that are compared, of which each tile is decoded once or so.

namespace slidestream {

/// Reads rectangles of levels in RGB, and keeps the tiles that they lie in. Strips and large tiles aren't kept.
class ColourTiles {
 public:
  static constexpr std::int64_t most_bytes = std::int64_t{1} << 22;  ///< of all tiles that are kept

  explicit ColourTiles(const Slide& slide) : slide_(slide) {}

  /// \throws SlideError as `read_rgb`. Missing tiles are white.
  RgbPicture read(std::size_t level, const PixelRange& columns, const PixelRange& rows);

  /// Likewise; nothing where tiles are missing or bad.
  std::optional<RgbPicture> read_whole(std::size_t level, const PixelRange& columns, const PixelRange& rows);

  /// Whether tiles of a level are kept.
  bool keeps(std::size_t level) const;

  /// Whether all tiles of a rectangle are kept, so that reading it decodes none.
  bool has(std::size_t level, const PixelRange& columns, const PixelRange& rows) const;

  /// Has the tiles of a rectangle make room for others first.
  void release(std::size_t level, const PixelRange& columns, const PixelRange& rows);

 private:
  struct Tile {
    std::int64_t left = 0;
    std::int64_t top = 0;
    RgbPicture picture;
    std::uint64_t used = 0;
  };

  const Tile& tile(std::size_t level, std::int64_t index);
  void make_room(std::size_t bytes);

  const Slide& slide_;
  std::map<std::pair<std::size_t, std::int64_t>, Tile> tiles_;
  std::size_t bytes_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace slidestream
