#include "synth/mosaic.hpp"

#include <algorithm>

namespace slidestream::synth {

namespace {

// Fewer distinct tiles than these can't cover every way in which grounds meet.
constexpr int least_for_edges = 32;
constexpr int least_for_stroma = 160;

std::size_t kind_of(const Corners& corners) {
  std::size_t kind = 0;
  for (const Ground corner : corners) kind = kind * 3 + static_cast<std::size_t>(corner);
  return kind;
}

Corners corners_of(std::size_t kind) {
  Corners corners{};
  for (std::size_t i = corners.size(); i > 0; --i, kind /= 3) corners[i - 1] = static_cast<Ground>(kind % 3);
  return corners;
}

}  // namespace

Mosaic::Mosaic(const Islands& islands, int tile, std::uint64_t seed, int distinct)
    : islands_(islands),
      tile_(tile),
      seed_(seed),
      edges_(distinct >= least_for_edges),
      stroma_(distinct >= least_for_stroma) {
  // Most tiles of a slide are inside epithelium or on glass, and glass all looks alike. The one tile of a stock of one
  // is tissue.
  const Corners all_tissue{Ground::epithelium, Ground::epithelium, Ground::epithelium, Ground::epithelium};
  const int glass_tiles = distinct == 1 ? 0 : std::max(1, distinct / 16);
  int left = distinct;
  for (std::size_t kind = 0; kind < variants_.size(); ++kind) {
    const Corners corners = corners_of(kind);
    const auto on_glass = std::count(corners.begin(), corners.end(), Ground::glass);
    const auto in_stroma = std::count(corners.begin(), corners.end(), Ground::stroma);
    int& count = variants_[kind].count;
    if (on_glass == 4) {
      count = glass_tiles;
    } else if ((on_glass == 0 || edges_) && (in_stroma == 0 || stroma_) && corners != all_tissue) {
      count = on_glass > 0 ? 1 : std::max(1, distinct / 100);
    }
    left -= count;
  }
  variants_[kind_of(all_tissue)].count = left;
  for (std::size_t kind = 0; kind < variants_.size(); ++kind) {
    variants_[kind].first = static_cast<int>(stock_.size());
    for (int variant = 0; variant < variants_[kind].count; ++variant) stock_.push_back({corners_of(kind), variant});
  }
}

Corners Mosaic::corners_at(std::int64_t column, std::int64_t row) const noexcept {
  Corners corners{};
  for (int corner = 0; corner < 4; ++corner) {
    Ground& ground = corners[corner];
    ground = islands_.ground_at((column + corner % 2) * tile_, (row + corner / 2) * tile_);
    if (ground == Ground::stroma && !stroma_) ground = Ground::epithelium;
  }
  if (!edges_) {
    const auto on_glass = std::count(corners.begin(), corners.end(), Ground::glass);
    corners.fill(on_glass > 2 && stock_.size() > 1 ? Ground::glass : Ground::epithelium);
  }
  return corners;
}

int Mosaic::choose(std::int64_t column, std::int64_t row) const noexcept {
  const Variants& among = variants_[kind_of(corners_at(column, row))];
  const auto any = hash(mix(seed_ ^ 0x6D6F73616963U), column, row) % static_cast<std::uint64_t>(among.count);
  return among.first + static_cast<int>(any);
}

}  // namespace slidestream::synth
