#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "codec/copied_level.hpp"
#include "image/pyramid_builder.hpp"
#include "image/pyramid_layout.hpp"
#include "stages/run/batch.hpp"

namespace slidestream {

/// The rows of tiles of a batch, as an image that copies them has them. They outlive the batch's slot.
class CopiedTiles {
 public:
  /// After the batch was decoded; `level` is what its tiles are to be. \throws TileError; `at` is then the number of
  /// the tile in the level.
  CopiedTiles(const Batch& batch, CopiedLevelPtr level, std::int64_t& at);

  std::int64_t first_row() const noexcept { return first_row_; }
  std::int64_t end_row() const noexcept { return first_row_ + std::ssize(places_) / columns_; }

  /// A tile of level 0 that is in the batch.
  std::span<const std::byte> tile(TileIndex index) const;

 private:
  struct Place {
    std::size_t offset = 0;
    std::size_t length = 0;  ///< 0: white
  };

  CopiedLevelPtr level_;
  std::int64_t first_row_ = 0;
  std::int64_t columns_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<Place> places_;  ///< row by row
};

/// Of an image whose level 0 isn't decoded: puts tiles that were made as those of level 0 where they belong, `levels`
/// below, and those of level 0 that are copied in front of them, without pixels. \param layout  of the whole image.
void put_below(std::vector<PyramidTile>& tiles, int levels, const CopiedTiles& copied, const PyramidLayout& layout);

}  // namespace slidestream
