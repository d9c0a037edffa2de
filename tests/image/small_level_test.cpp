#include "image/small_level.hpp"

#include <doctest/doctest.h>

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

TEST_CASE("The small level is the one nearest to 8 micrometres a pixel") {
  const SlideInfo info = slide(65536, 32768, {1, 4, 16, 32, 64});
  CHECK(choose_small_level(info, 0.25).level == 3);
  CHECK(choose_small_level(info, 0.5).level == 2);
  CHECK(choose_small_level(info, 0.125).level == 4);
  CHECK(choose_small_level(info, 100.0).level == 0);
  const SmallLevel found = choose_small_level(info, 0.5);
  CHECK(found.size == Size{4096, 2048});
  CHECK(found.halvings == 0);
  CHECK(found.scale.x == 16.0);
  CHECK(found.scale.y == 16.0);
}

TEST_CASE("Of two levels as near the finer one is the small level") {
  CHECK(choose_small_level(slide(65536, 32768, {1, 16, 64}), 0.25).level == 1);
  CHECK(choose_small_level(slide(65536, 32768, {1, 8, 128}), 0.25).level == 1);
}

TEST_CASE("Without a pixel size the small level is the one nearest to 1/32") {
  CHECK(choose_small_level(slide(65536, 32768, {1, 4, 16, 32, 64}), std::nullopt).level == 3);
  CHECK(choose_small_level(slide(65536, 32768, {1, 16, 64}), std::nullopt).level == 1);
  CHECK(choose_small_level(slide(65536, 32768, {1}), std::nullopt).level == 0);
}

TEST_CASE("A small level that is large is reduced until it has at most 2^26 pixels") {
  const SmallLevel whole = choose_small_level(slide(8192, 8192, {1}), 0.25);
  CHECK(whole.halvings == 0);
  const SmallLevel halved = choose_small_level(slide(8193, 8192, {1}), 0.25);
  CHECK(halved.halvings == 1);
  CHECK(halved.size == Size{4097, 4096});
  CHECK(halved.scale.x == 2.0);
  const SmallLevel large = choose_small_level(slide(200001, 100000, {1, 2}), 0.01);
  CHECK(large.level == 1);
  CHECK(large.halvings == 4);
  CHECK(large.size == Size{6250, 3125});
  CHECK(large.scale.x == doctest::Approx(16.0 * 200001.0 / 100000.0));
  CHECK(large.scale.y == 32.0);
}
