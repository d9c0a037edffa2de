#include "image/block_means.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace slidestream {

namespace {

bool are_sound(const PixelWeights& weights) noexcept {
  return weights.last >= 1 && weights.last <= weights.pixel && weights.pixel <= BlockMeans::most_weight;
}

/// What pixels [first, end) of an axis count together.
std::uint64_t sum_of(const PixelWeights& weights, std::int64_t first, std::int64_t end, std::int64_t size) noexcept {
  const std::int64_t less = end == size ? weights.pixel - weights.last : 0;
  return static_cast<std::uint64_t>((end - first) * weights.pixel - less);
}

/// Half up. Most sums are small, and their division is a lot faster.
std::uint8_t mean_of(std::uint64_t sum, std::uint64_t n) noexcept {
  constexpr std::uint64_t most_small = UINT32_MAX / 511;
  if (n > most_small) return static_cast<std::uint8_t>((2 * sum + n) / (2 * n));
  return static_cast<std::uint8_t>(static_cast<std::uint32_t>(2 * sum + n) / static_cast<std::uint32_t>(2 * n));
}

}  // namespace

BlockMeans::BlockMeans(Size input, int halvings, PixelWeights across, PixelWeights down)
    : input_(input), halvings_(halvings), across_(across), down_(down) {
  if (halvings < 0 || halvings > most_halvings) throw std::invalid_argument("blocks are too large");
  if (!are_sound(across) || !are_sound(down)) throw std::invalid_argument("weights of pixels are out of range");
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
  const auto pixel = static_cast<std::uint64_t>(across_.pixel);
  const auto less = static_cast<std::uint64_t>(across_.pixel - across_.last);
  const auto of_row = static_cast<std::uint64_t>(y + 1 == input_.height ? down_.last : down_.pixel);
  std::uint64_t* sums = sums_.data();
  for (std::int64_t x = 0; x < input_.width; x += side, sums += 3) {
    const std::int64_t end = std::min(x + side, input_.width);
    std::array<std::uint32_t, 3> block{};
    for (std::int64_t i = x; i < end; ++i, row += 3) {
      for (std::size_t c = 0; c < 3; ++c) block[c] += row[c];
    }
    for (std::size_t c = 0; c < 3; ++c) {
      std::uint64_t sum = pixel * block[c];
      if (end == input_.width) sum -= less * *(row - 3 + c);
      sums[c] += of_row * sum;
    }
  }
  if ((y + 1) % side != 0 && y + 1 != input_.height) return false;
  const std::uint64_t rows = sum_of(down_, y / side * side, y + 1, input_.height);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::int64_t x = static_cast<std::int64_t>(i / 3) * side;
    out[i] = mean_of(sums_[i], rows * sum_of(across_, x, std::min(x + side, input_.width), input_.width));
    sums_[i] = 0;
  }
  return true;
}

}  // namespace slidestream
