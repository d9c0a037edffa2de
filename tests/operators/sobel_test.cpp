#include "operators/sobel/sobel.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "random_rectangles.hpp"
#include "support/plain_operators.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

constexpr PixelFormat float_format = {SampleType::float32, 1};

}  // namespace

TEST_CASE("Sobel in 8 bits is the definition, whole and in rectangles") {
  check_rectangles(luminance_format, luminance_format, operators::sobel_border, operators::sobel,
                   [](const PixelImage& image) { return plain_sobel(image, SampleType::uint8); });
}

TEST_CASE("Sobel in float32 is the definition, whole and in rectangles") {
  check_rectangles(luminance_format, float_format, operators::sobel_border, operators::sobel,
                   [](const PixelImage& image) { return plain_sobel(image, SampleType::float32); });
}

TEST_CASE("A float32 root, rounded half up, counts as the definition does for every sum of squares") {
  int wrong = 0;
  for (int s = 0; s <= operators::max_sobel_square; ++s) {
    const float root = std::sqrt(static_cast<float>(s) * 0.03125F);
    wrong += root != plain_sobel_root(s);
    wrong += static_cast<std::uint8_t>(root + 0.5F) != plain_sobel_count(s);
  }
  CHECK(wrong == 0);
}

TEST_CASE("Every pair of gradients gives what the definition says") {
  // Of the diagonals f and r, the row's difference a and the column's l: gx = f + r + 2 a, gy = f - r + 2 l.
  struct Cell {
    int gx, gy, f, r, a, l;
  };
  std::vector<Cell> cells;
  for (int gx = 0; gx <= 1020; ++gx) {
    for (int gy = gx % 2; gy <= 1020; gy += 2) {
      const int f = std::min(255, (gx + gy) / 2);
      const int rest = (gx + gy) / 2 - f;
      if (rest > 510) continue;
      const int a = std::clamp(((gx - gy) / 2 + rest) / 2, rest - 255, 255);
      const int r = (gx - gy) / 2 + rest - 2 * a;
      if (std::abs(r) <= 255 && a >= -255 && std::abs(rest - a) <= 255) cells.push_back({gx, gy, f, r, a, rest - a});
    }
  }
  CHECK(cells.size() > 450000);
  PixelImage image({static_cast<std::int64_t>(3 * cells.size()), 3}, luminance_format);
  const auto differ = [&](std::int64_t x0, std::int64_t y0, std::int64_t x1, std::int64_t y1, int difference) {
    image.set(x0, y0, 0, static_cast<std::uint8_t>(std::max(-difference, 0)));
    image.set(x1, y1, 0, static_cast<std::uint8_t>(std::max(difference, 0)));
  };
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto x = static_cast<std::int64_t>(3 * i);
    differ(x, 0, x + 2, 2, cells[i].f);
    differ(x, 2, x + 2, 0, cells[i].r);
    differ(x, 1, x + 2, 1, cells[i].a);
    differ(x + 1, 0, x + 1, 2, cells[i].l);
  }
  PixelImage bytes(image.image, luminance_format);
  PixelImage floats(image.image, float_format);
  operators::sobel(bytes.view(), image.view());
  operators::sobel(floats.view(), image.view());
  int wrong = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const int s = cells[i].gx * cells[i].gx + cells[i].gy * cells[i].gy;
    const auto x = static_cast<std::int64_t>(3 * i + 1);
    wrong += bytes.at(x, 1) != plain_sobel_count(s) || floats.at<float>(x, 1) != plain_sobel_root(s);
  }
  CHECK(wrong == 0);
}

TEST_CASE("Sobel says when views don't fit") {
  PixelImage image({20, 20}, luminance_format);
  PixelImage colours({20, 20}, rgb_format);
  PixelImage made({20, 20}, luminance_format);
  CHECK_THROWS_AS(operators::sobel(made.view(), colours.view()), std::invalid_argument);
  CHECK_THROWS_AS(operators::sobel(colours.view(), image.view()), std::invalid_argument);
  CHECK_THROWS_AS(operators::sobel(made.view(), image.cut({0, 0, 20, 19}).view()), std::invalid_argument);
  PixelImage empty({3, 3, 0, 0}, {20, 20}, luminance_format);
  CHECK_THROWS_AS(operators::sobel(empty.view(), image.view()), std::invalid_argument);
  PixelImage beyond({10, 10, 11, 2}, {20, 20}, luminance_format);
  CHECK_THROWS_AS(operators::sobel(beyond.view(), image.view()), std::invalid_argument);
}
