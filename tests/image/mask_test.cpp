#include "image/mask.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "support/pixel_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

Mask random_mask(std::mt19937_64& random, Size size, GridScale scale) {
  Mask mask = empty_mask(size, scale,
                         {static_cast<std::int64_t>(std::ceil(static_cast<double>(size.width) * scale.x)),
                          static_cast<std::int64_t>(std::ceil(static_cast<double>(size.height) * scale.y))});
  for (std::uint8_t& pixel : mask.pixels) pixel = static_cast<std::uint8_t>((random() >> 20) & 1U);
  return mask;
}

/// Every pixel's centre, one by one.
bool counted(const Mask& mask, const Rect& window, const GridScale& level, double share) {
  int centres = 0;
  int tissue = 0;
  for (std::int64_t y = 0; y < mask.size.height; ++y) {
    for (std::int64_t x = 0; x < mask.size.width; ++x) {
      const double cx = (static_cast<double>(x) + 0.5) * mask.scale.x;
      const double cy = (static_cast<double>(y) + 0.5) * mask.scale.y;
      if (cx < static_cast<double>(window.x) * level.x || cx >= static_cast<double>(window.right()) * level.x ||
          cy < static_cast<double>(window.y) * level.y || cy >= static_cast<double>(window.bottom()) * level.y) {
        continue;
      }
      ++centres;
      tissue += mask.row(y)[static_cast<std::size_t>(x)];
    }
  }
  REQUIRE(centres > 0);
  return tissue >= share * centres;
}

}  // namespace

TEST_CASE("A window is tissue where enough of the centres in it are") {
  std::mt19937_64 random(3);
  int tissue = 0;
  for (int i = 0; i < 400; ++i) {
    const double scale = i % 2 == 0 ? 16.0 : 16.00731;
    const Mask mask = random_mask(random, random_size(random, 30), {scale, scale * 1.001});
    const MaskTable table(mask);
    const GridScale level = {i % 3 == 0 ? 4.0 : 1.0, i % 3 == 0 ? 4.0 : 1.0};
    const double share = i % 5 == 0 ? 0.25 : 0.5;
    const Rect window = {random_below(random, mask.size.width * 16) / static_cast<std::int64_t>(level.x) / 2,
                         random_below(random, mask.size.height * 16) / static_cast<std::int64_t>(level.y) / 2,
                         20 + random_below(random, 200), 20 + random_below(random, 200)};
    const double centre_x = (static_cast<double>(mask.size.width) - 0.5) * mask.scale.x;
    const double centre_y = (static_cast<double>(mask.size.height) - 0.5) * mask.scale.y;
    if (static_cast<double>(window.x) * level.x > centre_x || static_cast<double>(window.y) * level.y > centre_y)
      continue;
    const bool is = table.is_tissue(window, level, share);
    CHECK(is == counted(mask, window, level, share));
    tissue += is;
  }
  CHECK(tissue > 50);
  CHECK(tissue < 350);
}

TEST_CASE("Exactly half the centres are enough for a share of one half") {
  Mask mask = empty_mask({2, 2}, {8.0, 8.0}, {16, 16});
  mask.pixels = {1, 0, 1, 0};
  const MaskTable table(mask);
  CHECK(table.is_tissue({0, 0, 16, 16}, {1.0, 1.0}, 0.5));
  CHECK_FALSE(table.is_tissue({0, 0, 16, 16}, {1.0, 1.0}, 0.51));
  CHECK(table.is_tissue({0, 0, 12, 16}, {1.0, 1.0}, 1.0));
  CHECK(table.is_tissue({4, 0, 8, 16}, {1.0, 1.0}, 1.0));
  CHECK_FALSE(table.is_tissue({5, 0, 8, 16}, {1.0, 1.0}, 0.5));
  CHECK(table.share_of({0, 0, 16, 16}, {1.0, 1.0}) == 0.5);
  CHECK(table.share_of({0, 0, 12, 16}, {1.0, 1.0}) == 1.0);
  CHECK(table.share_of({5, 0, 8, 16}, {1.0, 1.0}) == 0.0);
  CHECK(tissue_share(mask) == 0.5);
}

TEST_CASE("A window without a centre is what lies under its middle") {
  Mask mask = empty_mask({2, 1}, {100.0, 100.0}, {200, 100});
  mask.pixels = {0, 1};
  const MaskTable table(mask);
  CHECK_FALSE(table.is_tissue({80, 10, 10, 10}, {1.0, 1.0}, 0.5));
  CHECK(table.is_tissue({110, 10, 10, 10}, {1.0, 1.0}, 0.5));
  CHECK(table.is_tissue({1000, 1000, 10, 10}, {1.0, 1.0}, 0.5));
  CHECK(table.share_of({80, 10, 10, 10}, {1.0, 1.0}) == 0.0);
  CHECK(table.share_of({110, 10, 10, 10}, {1.0, 1.0}) == 1.0);
}
