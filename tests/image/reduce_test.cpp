#include "image/reduce.hpp"

#include <doctest/doctest.h>

#include "support/pixel_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

PixelImage plain(const PixelImage& image, int halvings) {
  PixelImage made(reduced_size(image.image, halvings), image.format);
  const std::int64_t block = std::int64_t{1} << halvings;
  for (std::int64_t y = 0; y < made.image.height; ++y) {
    for (std::int64_t x = 0; x < made.image.width; ++x) {
      for (int c = 0; c < image.format.channels; ++c) {
        std::int64_t sum = 0;
        std::int64_t n = 0;
        for (std::int64_t j = y * block; j < std::min((y + 1) * block, image.image.height); ++j) {
          for (std::int64_t i = x * block; i < std::min((x + 1) * block, image.image.width); ++i) {
            sum += image.at(i, j, c);
            ++n;
          }
        }
        made.set(x, y, c, static_cast<std::uint8_t>((2 * sum + n) / (2 * n)));
      }
    }
  }
  return made;
}

}  // namespace

TEST_CASE("Reduction is the mean of blocks, rounded half up, whole and in rectangles") {
  std::mt19937_64 random(12);
  for (int i = 0; i < 60; ++i) {
    const int halvings = i % 5;
    const PixelImage image =
        random_image(random, random_size(random, i < 20 ? 4 : 90), i % 2 == 0 ? rgb_format : luminance_format);
    const PixelImage expected = plain(image, halvings);
    PixelImage whole(expected.image, image.format);
    reduce_image(whole.view(), image.view(), halvings);
    CHECK(whole.bytes == expected.bytes);
    PixelImage part(random_rect(random, expected.image), expected.image, image.format, 1);
    const std::int64_t block = std::int64_t{1} << halvings;
    const Rect below = {part.rect.x * block, part.rect.y * block, 0, 0};
    const PixelImage blocks =
        image.cut({below.x, below.y, std::min(part.rect.right() * block, image.image.width) - below.x,
                   std::min(part.rect.bottom() * block, image.image.height) - below.y},
                  2);
    reduce_image(part.view(), blocks.view(), halvings);
    CHECK(part.same_pixels(expected, part.rect));
  }
}

TEST_CASE("Reduction says when views don't fit") {
  PixelImage image({9, 9}, rgb_format);
  PixelImage fits({5, 5}, rgb_format);
  PixelImage other({4, 5}, rgb_format);
  CHECK_NOTHROW(reduce_image(fits.view(), image.view(), 1));
  CHECK_THROWS_AS(reduce_image(other.view(), image.view(), 1), std::invalid_argument);
  CHECK_THROWS_AS(reduce_image(fits.view(), image.cut({0, 0, 9, 8}).view(), 1), std::invalid_argument);
}
