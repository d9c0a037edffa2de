#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "image/pyramid_layout.hpp"
#include "runtime/slot_pool.hpp"

namespace slidestream {

/// Tiles of a slide's images that a device has made, on their way to the host in an output slot. Parcels of a slide
/// follow each other in the order of publishing, so that tiles of one wait for no tile of a later one.
struct Parcel {
  /// Tiles side by side in a row of tiles.
  struct Piece {
    std::size_t image = 0;  ///< of the slide's images
    int level = 0;
    TileIndex first;
    std::int64_t columns = 0;  ///< of tiles
    std::vector<std::uint64_t>
        ends;                ///< of tiles as files hold them: where each ends, from the first's begin; empty: pixels
    std::size_t offset = 0;  ///< of the slot: where they lie
    std::int64_t pitch = 0;  ///< of pixels there; of JPEG tiles 0
    const std::byte* from = nullptr;  ///< on the device
    std::int64_t from_pitch = 0;      ///< of pixels
    std::int64_t row_bytes = 0;       ///< of pixels, of one tile where each lies on its own; of JPEG tiles all bytes
    std::int64_t rows = 1;            ///< of pixels
  };

  std::vector<Piece> pieces;
  std::size_t bytes = 0;  ///< of the slot
  /// Who holds it keeps the tiles: it goes back when the last of them is written.
  std::shared_ptr<runtime::Slot> slot;
};

}  // namespace slidestream
