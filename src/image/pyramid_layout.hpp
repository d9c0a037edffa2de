#pragma once

#include <cstdint>
#include <slidestream/image.hpp>

/// \file
/// Sizes and tiles of an image's levels, and the order in which they are published.

namespace slidestream {

/// A tile of a level: its column and row in the grid of tiles.
struct TileIndex {
  std::int64_t column = 0;
  std::int64_t row = 0;

  friend constexpr bool operator==(const TileIndex&, const TileIndex&) = default;
};

/// Level k of an image of W x H pixels has ceil(W / 2^k) x ceil(H / 2^k) pixels, in square tiles, of which the last
/// ones may reach beyond the level.
///
/// Tiles are published as the rows of an image arrive from top to bottom: a row of tiles of level 0, then the rows of
/// tiles of other levels that it completes, finest first; in a row from left to right. So the order depends on sizes
/// alone.
class PyramidLayout {
 public:
  /// \param tile  side of the tiles in pixels, 1 or more.
  /// \param levels  how many there are, as long as they have more than one pixel; 0: down to one tile.
  PyramidLayout(Size image, int tile, int levels);

  int levels() const noexcept { return levels_; }
  int tile() const noexcept { return tile_; }

  Size size(int level) const noexcept;
  std::int64_t columns(int level) const noexcept;  ///< of tiles
  std::int64_t rows(int level) const noexcept;     ///< of tiles
  std::int64_t tiles(int level) const noexcept { return columns(level) * rows(level); }
  std::int64_t tiles() const noexcept;  ///< of all levels

  /// A tile's pixels, as far as they are inside the level.
  Rect rect(int level, TileIndex index) const noexcept;

  /// How many pixel rows of a level are known when `base_rows` rows of the image are.
  std::int64_t known_rows(int level, std::int64_t base_rows) const noexcept;

  /// How many of a level's rows of tiles are published with or before the row of tiles `base_tile_row` of level 0.
  std::int64_t completed_rows(int level, std::int64_t base_tile_row) const noexcept;

  /// A tile's place in the order of publishing, from 0.
  std::int64_t position(int level, TileIndex index) const noexcept;

 private:
  Size image_;
  int tile_;
  int levels_;
};

}  // namespace slidestream
