#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "slide/tile_reader.hpp"
#include "tiling/tile_stream.hpp"

namespace slidestream {

/// Tiles of a stream's slides that became white, each counted once. Thread-safe.
class WhiteTiles {
 public:
  /// \param slide  its place in `TileStreamOptions::slides` \param fate  nothing is counted of a decoded tile
  void add(std::int32_t slide, std::int64_t tile, TileFate fate);

  /// Adds a line to the options' warnings for each slide whose place is below `end`, and forgets these slides.
  void tell(std::int32_t end, const TileStreamOptions& options);

 private:
  struct OfSlide {
    std::vector<bool> seen;  ///< by the tile's index
    std::int64_t missing = 0;
    std::int64_t bad = 0;
  };

  std::mutex mutex_;
  std::map<std::int32_t, OfSlide> slides_;  ///< guarded by mutex_
};

}  // namespace slidestream
