#include "image/pyramid_layout.hpp"

#include <doctest/doctest.h>

#include <random>

namespace slidestream {
namespace {

TEST_CASE("levels go down to one tile, or as far as they are wanted") {
  CHECK(PyramidLayout({1, 1}, 256, 0).levels() == 1);
  CHECK(PyramidLayout({256, 256}, 256, 0).levels() == 1);
  CHECK(PyramidLayout({257, 1}, 256, 0).levels() == 2);
  CHECK(PyramidLayout({65664, 43264}, 256, 0).levels() == 10);
  CHECK(PyramidLayout({1000, 1000}, 256, 1).levels() == 1);
  CHECK(PyramidLayout({100, 100}, 256, 3).levels() == 3);
  CHECK(PyramidLayout({3, 2}, 256, 9).levels() == 3);  // 3 x 2, 2 x 1, 1 x 1
  CHECK(PyramidLayout({5, 3}, 2, 0).size(1) == Size{3, 2});
  CHECK(PyramidLayout({5, 3}, 2, 0).rect(0, {2, 1}) == Rect{4, 2, 1, 1});
}

TEST_CASE("a tile's place is what counting as rows arrive gives") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const PyramidLayout layout({1 + static_cast<int>(random() % 300), 1 + static_cast<int>(random() % 300)},
                               1 << (random() % 6), static_cast<int>(random() % 7));
    std::int64_t place = 0;
    std::vector<std::int64_t> done(static_cast<std::size_t>(layout.levels()));
    for (std::int64_t base = 0; base < layout.rows(0); ++base) {
      const std::int64_t base_rows = std::min((base + 1) * layout.tile(), layout.size(0).height);
      for (int level = 0; level < layout.levels(); ++level) {
        for (std::int64_t& row = done[static_cast<std::size_t>(level)]; row < layout.rows(level); ++row) {
          const Rect tile = layout.rect(level, {0, row});
          if (std::min(tile.bottom() << level, layout.size(0).height) > base_rows) break;
          for (std::int64_t column = 0; column < layout.columns(level); ++column) {
            REQUIRE(layout.position(level, {column, row}) == place++);
          }
        }
        REQUIRE(layout.completed_rows(level, base) == done[static_cast<std::size_t>(level)]);
      }
    }
    REQUIRE(place == layout.tiles());
  }
}

}  // namespace
}  // namespace slidestream
