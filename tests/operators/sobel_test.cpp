#include "operators/sobel/sobel.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "random_rectangles.hpp"
#include "support/gradient_cells.hpp"
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
  constexpr int most = 2 * 1020 * 1020;
  int wrong = 0;
  for (int s = 0; s <= most; ++s) {
    const float root = std::sqrt(static_cast<float>(s) * 0.03125F);
    wrong += root != plain_sobel_root(s);
    wrong += static_cast<std::uint8_t>(root + 0.5F) != plain_sobel_count(s);
  }
  CHECK(wrong == 0);
}

TEST_CASE("Every pair of gradients gives what the definition says") {
  const GradientCells made;
  PixelImage bytes(made.image.image, luminance_format);
  PixelImage floats(made.image.image, float_format);
  operators::sobel(bytes.view(), made.image.view());
  operators::sobel(floats.view(), made.image.view());
  CHECK(made.cells.size() > 450000);
  CHECK(made.wrong(bytes, floats) == 0);
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
