#pragma once

#include <cstdint>
#include <vector>

#include "synth/tissue.hpp"

/// \file
/// Which of a few distinct tiles stands where on a large slide.

namespace slidestream::synth {

/// A stock of tiles for every way in which glass, epithelium and stroma may meet a tile's corners (those that few tiles
/// can serve), and a seeded choice among them.
class Mosaic {
 public:
  /// \param distinct how many tiles the stock holds, 1 or more.
  Mosaic(const Islands& islands, int tile, std::uint64_t seed, int distinct);

  struct Tile {
    Corners corners{};
    int variant = 0;
  };
  const std::vector<Tile>& stock() const noexcept { return stock_; }

  /// The tile of the stock that stands at a place.
  int choose(std::int64_t column, std::int64_t row) const noexcept;

 private:
  struct Variants {
    int first = 0;
    int count = 0;
  };
  Corners corners_at(std::int64_t column, std::int64_t row) const noexcept;

  Islands islands_;
  int tile_;
  std::uint64_t seed_;
  std::vector<Tile> stock_;
  bool edges_;                           ///< the stock has tiles with some corners on glass
  bool stroma_;                          ///< the stock has tiles with corners in stroma
  std::array<Variants, 81> variants_{};  ///< by corners, a base-3 digit each
};

}  // namespace slidestream::synth
