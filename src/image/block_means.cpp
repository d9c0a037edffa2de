#include "image/block_means.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace slidestream {

BlockMeans::BlockMeans(Size input, int halvings) : input_(input), halvings_(halvings) {
  if (halvings < 0 || halvings > most_halvings) throw std::invalid_argument("blocks are too large");
  sums_.resize(static_cast<std::size_t>(size_of(input, halvings).width) * 3);
}

Size BlockMeans::size_of(Size input, int halvings) noexcept {
  const std::int64_t side = std::int64_t{1} << halvings;
  return {(input.width + side - 1) / side, (input.height + side - 1) / side};
}

bool BlockMeans::add(std::uint8_t* out, const std::uint8_t* row) {
  const std::int64_t side = std::int64_t{1} << halvings_;
  const std::int64_t y = next_++;
  if (halvings_ == 0) {
    std::memcpy(out, row, sums_.size());
    return true;
  }
  std::uint32_t* sums = sums_.data();
  for (std::int64_t x = 0; x < input_.width; x += side, sums += 3) {
    const std::int64_t end = std::min(x + side, input_.width);
    for (std::int64_t i = x; i < end; ++i, row += 3) {
      for (int c = 0; c < 3; ++c) sums[c] += row[c];
    }
  }
  if ((y + 1) % side != 0 && y + 1 != input_.height) return false;
  const auto rows = static_cast<std::uint32_t>(y % side + 1);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::int64_t x = static_cast<std::int64_t>(i / 3) * side;
    const std::uint32_t n = rows * static_cast<std::uint32_t>(std::min(side, input_.width - x));
    out[i] = static_cast<std::uint8_t>((2 * sums_[i] + n) / (2 * n));
    sums_[i] = 0;
  }
  return true;
}

}  // namespace slidestream
