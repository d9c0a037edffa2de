#include "synth/tissue.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "synth/mosaic.hpp"

namespace slidestream::synth {
namespace {

std::vector<std::uint8_t> canvas(int tile) {
  return std::vector<std::uint8_t>(static_cast<std::size_t>(tile) * static_cast<std::size_t>(tile) * 3);
}

TEST_CASE("what a slide shows doesn't depend on its tiles") {
  const Islands islands(4000, 3000, 5);
  TissuePainter large(256, 5);
  TissuePainter small(64, 5);
  std::vector<std::uint8_t> whole = canvas(256);
  std::vector<std::uint8_t> part = canvas(64);
  large.paint(islands, 1792, 1280, whole);
  int furthest = 0;
  for (int index = 0; index < 16; ++index) {
    const int left = index % 4 * 64;
    const int top = index / 4 * 64;
    small.paint(islands, 1792 + left, 1280 + top, part);
    for (int y = 0; y < 64; ++y) {
      for (int x = 0; x < 64 * 3; ++x) {
        const int difference = int{whole[static_cast<std::size_t>(((top + y) * 256 + left) * 3 + x)]} -
                               int{part[static_cast<std::size_t>(y * 64 * 3 + x)]};
        furthest = std::max(furthest, std::abs(difference));
      }
    }
  }
  // Coordinates relative to a tile are rounded differently.
  CHECK(furthest <= 1);
}

TEST_CASE("repeatable tiles join without a seam") {
  constexpr int tile = 240;
  TissuePainter painter(tile, 9);
  std::vector<std::uint8_t> left = canvas(tile);
  std::vector<std::uint8_t> right = canvas(tile);
  const Corners all{Ground::epithelium, Ground::epithelium, Ground::epithelium, Ground::epithelium};
  const Corners half{Ground::epithelium, Ground::stroma, Ground::epithelium, Ground::glass};
  painter.paint_repeatable(all, 0, left);
  painter.paint_repeatable(half, 3, right);
  const auto green = [](const std::vector<std::uint8_t>& pixels, int x, int y) {
    return int{pixels[static_cast<std::size_t>((y * tile + x) * 3 + 1)]};
  };
  double across_seam = 0.0;
  double inside = 0.0;
  double unrelated = 0.0;
  for (int y = 0; y < tile; ++y) {
    across_seam += std::abs(green(left, tile - 1, y) - green(right, 0, y));
    inside += std::abs(green(left, tile - 2, y) - green(left, tile - 1, y));
    unrelated += std::abs(green(left, tile / 2, y) - green(right, 0, y));
  }
  CHECK(across_seam < 1.5 * inside);
  CHECK(unrelated > 1.5 * across_seam);
}

TEST_CASE("a mosaic has as many tiles as asked for and uses only those") {
  for (const int distinct : {1, 2, 3, 31, 32, 33, 159, 160, 300, 1000}) {
    CAPTURE(distinct);
    const Islands islands(20000, 15000, 3);
    const Mosaic mosaic(islands, 256, 3, distinct);
    CHECK(mosaic.stock().size() == static_cast<std::size_t>(distinct));
    std::vector<int> used(mosaic.stock().size());
    for (int row = 0; row < 59; ++row) {
      for (int column = 0; column < 79; ++column) ++used.at(static_cast<std::size_t>(mosaic.choose(column, row)));
    }
    if (distinct <= 3) {
      for (const int count : used) CHECK(count > 0);
    }
  }
}

TEST_CASE("tiles of a mosaic agree with their neighbours on what lies at their corners") {
  const Islands islands(20000, 15000, 4);
  for (const int distinct : {40, 300}) {
    const Mosaic mosaic(islands, 128, 4, distinct);
    for (int row = 0; row < 60; ++row) {
      for (int column = 0; column < 80; ++column) {
        const Corners& here = mosaic.stock()[static_cast<std::size_t>(mosaic.choose(column, row))].corners;
        const Corners& next = mosaic.stock()[static_cast<std::size_t>(mosaic.choose(column + 1, row))].corners;
        const Corners& below = mosaic.stock()[static_cast<std::size_t>(mosaic.choose(column, row + 1))].corners;
        REQUIRE(here[1] == next[0]);
        REQUIRE(here[3] == next[2]);
        REQUIRE(here[2] == below[0]);
        REQUIRE(here[3] == below[1]);
      }
    }
  }
}

}  // namespace
}  // namespace slidestream::synth
