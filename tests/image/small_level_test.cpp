#include "image/small_level.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "image/block_means.hpp"

using namespace slidestream;

namespace {

SlideInfo slide(std::int64_t width, std::int64_t height, std::initializer_list<std::int64_t> downsamples) {
  SlideInfo info;
  for (const std::int64_t by : downsamples) {
    Level level;
    level.width = width / by;
    level.height = height / by;
    level.downsample = static_cast<double>(width) / static_cast<double>(level.width);
    info.levels.push_back(level);
  }
  return info;
}

}  // namespace

TEST_CASE("The small level has pixels of 8 micrometres, from the coarsest level that is not coarser") {
  const SlideInfo info = slide(65536, 32768, {1, 4, 16, 32, 64});
  const auto is = [&](double mpp, std::size_t level, std::int64_t factor, int halvings = 0) {
    const SmallLevel found = choose_small_level(info, mpp);
    CHECK(found.level == level);
    CHECK(found.factor == factor);
    CHECK(found.halvings == halvings);
  };
  is(0.25, 3, 65536);
  is(0.5, 2, 65536);
  is(0.125, 4, 65536);
  is(0.252, 3, 65536);  // within 2 %
  is(0.2, 3, 81920);    // 40 pixels of level 0
  is(0.3, 2, 109227);   // 26.7 pixels
  is(0.1, 4, 81920);
  is(0.7, 1, 93623, 1);  // 11.4 pixels: 8 of them, and 1.43 of these
  is(4.0, 0, 65536, 3);  // larger pixels, as no more than 2^26 fit
  const SmallLevel found = choose_small_level(info, 0.2);
  CHECK(found.size == Size{1638, 819});
  CHECK(found.scale.x == 40.0);
  CHECK(found.scale.y == 40.0);
}

TEST_CASE("Without a pixel size the small level is 1/32 of level 0") {
  CHECK(choose_small_level(slide(65536, 32768, {1, 4, 16, 32, 64}), std::nullopt).level == 3);
  const SmallLevel between = choose_small_level(slide(65536, 32768, {1, 16, 64}), std::nullopt);
  CHECK(between.level == 1);
  CHECK(between.halvings == 1);
  CHECK(between.factor == 65536);
  const SmallLevel alone = choose_small_level(slide(65536, 32768, {1}), std::nullopt);
  CHECK(alone.halvings == 5);
  CHECK(alone.size == Size{2048, 1024});
}

TEST_CASE("Pixels of a small level have a whole number of level 0's, whatever the slide's size") {
  for (const std::int64_t side : {1024, 1025, 1055, 1056, 1057}) {
    CAPTURE(side);
    const SmallLevel found = choose_small_level(slide(side, side + 7, {1}), 0.25);
    CHECK(found.scale.x == 32.0);
    CHECK(found.scale.y == 32.0);
    CHECK(found.size == Size{(side + 31) / 32, (side + 7 + 31) / 32});
  }
  CHECK(choose_small_level(slide(1057, 1057, {1, 4}), 0.25).scale.x == 32.0);
  const SmallLevel between = choose_small_level(slide(1066, 1066, {1}), 0.3);
  CHECK(between.halvings == 4);
  CHECK(between.scale.x == doctest::Approx(8.0 / 0.3).epsilon(1e-4));
}

TEST_CASE("A small level has at least a pixel, at most 2^26, and none of more than 256 x 256") {
  const SmallLevel tiny = choose_small_level(slide(20, 9, {1}), 0.25);
  CHECK(tiny.halvings == 3);
  CHECK(tiny.factor == 2 * 65536);
  CHECK(tiny.size == Size{1, 1});
  const SmallLevel large = choose_small_level(slide(16384, 16384, {1}), 20.0);
  CHECK(large.halvings == 1);
  CHECK(large.size == Size{8192, 8192});
  CHECK(large.scale.x == 2.0);
  CHECK(choose_small_level(slide(65536, 32768, {1}), 0.001).halvings == 8);
}

TEST_CASE("A level that lacks, and would be half of another, changes nothing") {
  // Sizes of levels are rounded up: 2220 / 139 is less than 16.
  const auto pyramid = [](int levels) {
    SlideInfo info;
    for (int k = 0; k < levels; ++k) {
      Level level;
      level.width = (2220 + (1 << k) - 1) >> k;
      level.height = (2967 + (1 << k) - 1) >> k;
      level.downsample = 2220.0 / static_cast<double>(level.width);
      info.levels.push_back(level);
    }
    return info;
  };
  for (const double mpp : {0.499, 0.3, 0.252, 1.9}) {
    const SmallLevel alone = choose_small_level(pyramid(1), mpp);
    for (int levels = 2; levels < 7; ++levels) {
      const SmallLevel found = choose_small_level(pyramid(levels), mpp);
      CHECK(static_cast<int>(found.level) + found.halvings == alone.halvings);
      CHECK(found.factor == alone.factor);
      CHECK(found.size == alone.size);
      CHECK(found.scale.x == alone.scale.x);
      CHECK(found.scale.y == alone.scale.y);
    }
  }
}

TEST_CASE("The same pixels are made of the next larger level") {
  const SlideInfo info = slide(65536, 32768, {1, 4, 16, 32, 64});
  for (const double mpp : {0.25, 0.2, 0.252, 2.0}) {
    CAPTURE(mpp);
    const SmallLevel small = choose_small_level(info, mpp);
    const auto larger = of_larger_level(info, small);
    REQUIRE(larger.has_value());
    CHECK(larger->level + 1 == small.level);
    CHECK(larger->size == small.size);
    CHECK(larger->scale.x == small.scale.x);
    CHECK(larger->scale.y == small.scale.y);
  }
  CHECK_FALSE(of_larger_level(info, choose_small_level(info, 4.0)).has_value());
}

TEST_CASE("A level's last pixels count by what they show of level 0") {
  SlideInfo info = slide(1110, 1483, {1});
  Level eighth;
  eighth.width = 139;   // 138.75
  eighth.height = 186;  // 185.375
  Level half;
  half.width = 555;
  half.height = 741;  // without the last row
  info.levels.insert(info.levels.end(), {half, eighth});
  const LevelWeights of_eighth = weights_of_level(info, 2);
  CHECK(of_eighth.across.pixel == 8);
  CHECK(of_eighth.across.last == 6);
  CHECK(of_eighth.down.pixel == 8);
  CHECK(of_eighth.down.last == 3);
  for (const std::size_t level : {0U, 1U}) {
    const LevelWeights whole = weights_of_level(info, level);
    CHECK(whole.across.last == whole.across.pixel);
    CHECK(whole.down.last == whole.down.pixel);
  }
}

TEST_CASE("Weights of pixels are in range") {
  for (const PixelWeights weights : {PixelWeights{0, 0}, {8, 0}, {8, 9}, {BlockMeans::most_weight + 1, 1}}) {
    CHECK_THROWS_AS(BlockMeans({4, 4}, 1, weights), std::invalid_argument);
    CHECK_THROWS_AS(BlockMeans({4, 4}, 1, {}, weights), std::invalid_argument);
  }
}

TEST_CASE("Blocks are means of their pixels inside the image by weight, rounded once") {
  const Size size = {21, 11};
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width * size.height * 3));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i % 251);
  struct Case {
    int halvings;
    PixelWeights across;
    PixelWeights down;
  };
  std::vector<Case> cases;
  for (const int halvings : {0, 1, 2, 4, 8}) {
    constexpr std::int64_t most = BlockMeans::most_weight;
    cases.insert(cases.end(), {{halvings, {}, {}},
                               {halvings, {8, 3}, {8, 6}},
                               {halvings, {4, 1}, {}},
                               {halvings, {}, {2, 1}},
                               {halvings, {most, 1}, {most, most}}});
  }
  for (const Case& tried : cases) {
    const int halvings = tried.halvings;
    const PixelWeights across = tried.across;
    const PixelWeights down = tried.down;
    CAPTURE(halvings);
    CAPTURE(across.last);
    CAPTURE(down.last);
    const std::int64_t side = std::int64_t{1} << halvings;
    BlockMeans means(size, halvings, across, down);
    const Size made = BlockMeans::size_of(size, halvings);
    std::vector<std::uint8_t> row(static_cast<std::size_t>(made.width) * 3);
    std::int64_t rows = 0;
    for (std::int64_t y = 0; y < size.height; ++y) {
      if (!means.add(row.data(), pixels.data() + y * size.width * 3)) continue;
      for (std::int64_t x = 0; x < made.width * 3; ++x) {
        std::int64_t sum = 0;
        std::int64_t count = 0;
        for (std::int64_t v = rows * side; v < std::min((rows + 1) * side, size.height); ++v) {
          for (std::int64_t u = x / 3 * side; u < std::min((x / 3 + 1) * side, size.width); ++u) {
            const std::int64_t weight =
                (u + 1 == size.width ? across.last : across.pixel) * (v + 1 == size.height ? down.last : down.pixel);
            sum += weight * pixels[static_cast<std::size_t>((v * size.width + u) * 3 + x % 3)];
            count += weight;
          }
        }
        CHECK(row[static_cast<std::size_t>(x)] == (2 * sum + count) / (2 * count));
      }
      ++rows;
    }
    CHECK(rows == made.height);
  }
}
