#include "volume/fragments.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace slidestream::volume {
namespace {

TEST_CASE("volume fragments begin at equal distances, rounded half up") {
  for (std::int64_t size = 1; size < 60; ++size) {
    for (std::int64_t fragment = 1; fragment <= size; ++fragment) {
      for (std::int64_t count = 2; count < 9; ++count) {
        const FragmentAxis axis = {size, fragment, count};
        CHECK(axis.begin(0) == 0);
        CHECK(axis.begin(count - 1) == size - fragment);
        for (std::int64_t i = 0; i < count; ++i) {
          const double exact = static_cast<double>(i * (size - fragment)) / static_cast<double>(count - 1);
          REQUIRE(axis.begin(i) == static_cast<std::int64_t>(std::floor(exact + 0.5)));
        }
      }
    }
  }
}

TEST_CASE("volume fragments of a head lie where the published ones do") {
  const FragmentGrid grid({172, 220, 156}, {96, 128, 88}, {3, 3, 3});
  CHECK(grid.count() == 27);
  CHECK(grid.covers());
  CHECK(grid.begin(0) == Extent{0, 0, 0});
  CHECK(grid.begin(13) == Extent{38, 46, 34});
  CHECK(grid.begin(26) == Extent{76, 92, 68});
  CHECK(grid.begin(1) == Extent{0, 0, 34});
  CHECK(grid.begin(3) == Extent{0, 46, 0});
}

TEST_CASE("a volume that is smaller than a fragment is padded evenly") {
  CHECK(FragmentAxis{5, 8, 3}.begin(0) == -1);
  CHECK(FragmentAxis{5, 8, 3}.begin(2) == -1);
  CHECK(FragmentAxis{4, 8, 1}.begin(0) == -2);
  const FragmentGrid grid({1, 2, 3}, {2, 3, 6}, {1, 1, 1});
  std::vector<float> volume(6);
  std::iota(volume.begin(), volume.end(), 1.0F);
  std::vector<float> cut(36);
  grid.cut(cut, volume, 0, -7.0F);
  std::vector<float> expected(36, -7.0F);
  for (std::size_t y = 0; y < 2; ++y) {
    for (std::size_t x = 0; x < 3; ++x) expected[y * 6 + 1 + x] = volume[y * 3 + x];
  }
  CHECK(cut == expected);
}

TEST_CASE("fragments that leave samples out are told from others") {
  CHECK_FALSE(FragmentAxis{10, 4, 2}.covers());
  CHECK(FragmentAxis{8, 4, 2}.covers());
  CHECK_FALSE(FragmentAxis{9, 4, 1}.covers());
  CHECK(FragmentAxis{4, 4, 1}.covers());
  CHECK(FragmentAxis{3, 4, 2}.covers());
  CHECK_FALSE(FragmentGrid({8, 10, 8}, {4, 4, 4}, {2, 2, 2}).covers());
}

TEST_CASE("fragments are cut as they are numbered") {
  const Extent size = {5, 6, 7};
  const FragmentGrid grid(size, {3, 4, 2}, {2, 3, 4});
  std::vector<float> volume(static_cast<std::size_t>(count_of(size)));
  std::iota(volume.begin(), volume.end(), 0.0F);
  std::vector<float> cut(24);
  for (std::size_t i = 0; i < grid.count(); ++i) {
    grid.cut(cut, volume, i, 0.0F);
    const Extent from = grid.begin(i);
    std::size_t at = 0;
    for (std::int64_t z = 0; z < 3; ++z) {
      for (std::int64_t y = 0; y < 4; ++y) {
        for (std::int64_t x = 0; x < 2; ++x) {
          REQUIRE(cut[at++] == static_cast<float>(((from[0] + z) * 6 + from[1] + y) * 7 + from[2] + x));
        }
      }
    }
  }
  CHECK_THROWS_AS(grid.cut(std::span(cut).first(5), volume, 0, 0.0F), std::invalid_argument);
  CHECK_THROWS_AS(FragmentGrid(size, {0, 1, 1}, {1, 1, 1}), std::invalid_argument);
}

}  // namespace
}  // namespace slidestream::volume
