#include "synth/mosaic.hpp"

#include <algorithm>
#include <bit>

namespace slidestream::synth {

namespace {

constexpr unsigned all_glass = 0;
constexpr unsigned all_tissue = 15;

}  // namespace

Mosaic::Mosaic(const Islands& islands, int tile, std::uint64_t seed, int distinct)
    : islands_(islands), tile_(tile), seed_(seed) {
  // Most tiles of a slide are inside tissue or on glass, and glass all looks alike.
  const bool edges = distinct >= 32;
  const int per_edge = edges ? std::max(1, distinct / 50) : 0;
  const int glass = distinct == 1 ? 0 : std::max(1, distinct / 12);
  const int tissue = distinct - glass - 14 * per_edge;
  for (unsigned corners = 0; corners < variants_.size(); ++corners) {
    const int count = corners == all_glass ? glass : corners == all_tissue ? tissue : per_edge;
    variants_[corners] = {static_cast<int>(stock_.size()), count};
    for (int variant = 0; variant < count; ++variant) {
      stock_.push_back({{(corners & 1) != 0, (corners & 2) != 0, (corners & 4) != 0, (corners & 8) != 0}, variant});
    }
  }
}

int Mosaic::choose(std::int64_t column, std::int64_t row) const noexcept {
  unsigned corners = 0;
  for (unsigned corner = 0; corner < 4; ++corner) {
    const std::int64_t x = (column + (corner & 1)) * tile_;
    const std::int64_t y = (row + (corner >> 1)) * tile_;
    if (islands_.at(x, y) > 0.0F) corners |= 1U << corner;
  }
  if (variants_[corners].count == 0) corners = std::popcount(corners) >= 2 ? all_tissue : all_glass;
  if (variants_[corners].count == 0) corners = all_tissue;
  // Neighbours are of one character, so that the slide has regions, with enough chance not to repeat a tile at once.
  const Variants& among = variants_[corners];
  const float chance = unit(hash(mix(seed_ ^ 0x6D6F73616963U), column, row));
  const float place = 1.4F * islands_.character_at(column * tile_, row * tile_) - 0.2F + 0.35F * (chance - 0.5F);
  return among.first + std::clamp(static_cast<int>(place * static_cast<float>(among.count)), 0, among.count - 1);
}

}  // namespace slidestream::synth
