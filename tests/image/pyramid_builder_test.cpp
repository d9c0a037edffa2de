#include "image/pyramid_builder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/plain_pyramid.hpp"

namespace slidestream {
namespace {

using test::WholeImage;

/// Puts a tile's pixels into its level.
void place(const PyramidTile& job, WholeImage& level) {
  const Rect rect = job.pixels.rect;
  const std::size_t bytes = level.format.pixel_bytes();
  REQUIRE(job.pixels.image == level.size);
  for (std::int64_t y = rect.y; y < rect.bottom(); ++y) {
    std::memcpy(level.bytes.data() + static_cast<std::size_t>(y * level.size.width + rect.x) * bytes,
                job.pixels.row<const std::byte>(y), static_cast<std::size_t>(rect.width) * bytes);
  }
}

/// Bands of `image` through the builder; `heights()` says how high the next one is.
template <class Heights>
void compare(const WholeImage& image, const PyramidLayout& layout, bool labels, Heights heights, bool threads) {
  PyramidBuilder builder(layout, image.format, labels);
  const std::vector<WholeImage> expected = test::plain_pyramid(image, layout.levels(), labels);
  std::vector<WholeImage> found;
  for (const WholeImage& level : expected) found.emplace_back(level.size, level.format);
  std::vector<PyramidTile> waiting;  // their pixels must stay while others are made
  std::int64_t position = 0;
  for (std::int64_t y = 0; y < image.size.height;) {
    const std::int64_t height = std::min<std::int64_t>(heights(), image.size.height - y);
    // The band's memory goes away when the builder and its tiles let it.
    const auto copy = std::make_shared<WholeImage>(Size{image.size.width, height}, image.format);
    const auto rows = image.rows(y, height);
    std::memcpy(copy->bytes.data(), rows.data, copy->bytes.size());
    auto band = copy->rows(0, height);
    band.rect = rows.rect;
    band.image = rows.image;
    builder.begin(band, copy);
    if (threads) {
      std::vector<std::jthread> all;
      for (int piece = builder.pieces() - 1; piece >= 0; --piece)
        all.emplace_back([&, piece] { builder.reduce(piece); });
    } else {
      for (int piece = builder.pieces() - 1; piece >= 0; --piece) builder.reduce(piece);
    }
    for (PyramidTile& job : builder.finish()) {
      REQUIRE(layout.position(job.level, job.index) == position++);
      waiting.push_back(std::move(job));
    }
    y += height;
    if (waiting.size() > 64) {
      for (const PyramidTile& job : waiting) place(job, found[static_cast<std::size_t>(job.level)]);
      waiting.clear();
    }
  }
  for (const PyramidTile& job : waiting) place(job, found[static_cast<std::size_t>(job.level)]);
  CHECK(position == layout.tiles());
  for (std::size_t level = 0; level < expected.size(); ++level) {
    CAPTURE(level);
    CHECK(found[level].bytes == expected[level].bytes);
  }
}

TEST_CASE("levels of random images are those of the definition, whatever the bands") {
  std::mt19937 random(11);
  const auto below = [&](unsigned most) { return 1 + static_cast<int>(random() % most); };
  for (int round = 0; round < 160; ++round) {
    const PixelFormat format{static_cast<SampleType>(round % 3), round % 5 == 4 ? 2 : round % 2 == 0 ? 3 : 1};
    const Size size{below(round % 4 == 0 ? 8 : 330), below(round % 7 == 0 ? 8 : 260)};
    const int tile = 2 << random() % 6;
    const PyramidLayout layout(size, tile, round % 3 == 0 ? 0 : below(9));
    const bool labels = round % 6 == 5;
    CAPTURE(round);
    CAPTURE(size.width);
    CAPTURE(size.height);
    CAPTURE(tile);
    const int kind = round % 4;
    const auto heights = [&]() -> std::int64_t {
      return kind == 0   ? tile
             : kind == 1 ? 3 * tile
             : kind == 2 ? below(3U * static_cast<unsigned>(tile))
                         : size.height;
    };
    compare(test::noise_image(size, format, random), layout, labels, heights, false);
  }
}

TEST_CASE("float levels are means of level 0, at edges of odd images too, and the values' range is known") {
  std::mt19937 random(5);
  for (const Size size : {Size{255, 131}, Size{33, 1}, Size{1, 129}, Size{5, 257}, Size{4097, 9}}) {
    CAPTURE(size.width);
    const PixelFormat format{SampleType::float32, 2};
    WholeImage image = test::noise_image(size, format, random);
    // A jump in the last column and row weighs as much as its pixels do.
    for (std::int64_t y = 0; y < size.height; ++y) image.at<float>(size.width - 1, y)[0] = 255.0F;
    for (std::int64_t x = 0; x < size.width; ++x) image.at<float>(x, size.height - 1)[1] = 255.0F;
    image.at<float>(size.width / 2, 0)[0] = -1000.5F;
    const PyramidLayout layout(size, 16, 32);
    PyramidBuilder builder(layout, format, false);
    const auto band = std::make_shared<WholeImage>(image);
    const std::vector<PyramidTile> tiles = builder.add(band->rows(0, size.height), band);
    for (const PyramidTile& job : tiles) {
      const std::int64_t block = std::int64_t{1} << job.level;
      const Rect rect = job.pixels.rect;
      for (std::int64_t y = rect.y; y < rect.bottom(); ++y) {
        for (std::int64_t x = rect.x; x < rect.right(); ++x) {
          for (int c = 0; c < 2; ++c) {
            long double sum = 0;
            std::int64_t n = 0;
            for (std::int64_t v = y * block; v < std::min((y + 1) * block, size.height); ++v) {
              for (std::int64_t u = x * block; u < std::min((x + 1) * block, size.width); ++u, ++n) {
                sum += image.at<float>(u, v)[c];
              }
            }
            const auto mean = static_cast<double>(sum / static_cast<long double>(n));
            const float found = job.pixels.row<const float>(y)[(x - rect.x) * 2 + c];
            // Half a unit of float32's last place, and what sums in float64 leave.
            REQUIRE(std::abs(found - mean) <= std::abs(mean) * 0x1p-24 + 1e-9);
          }
        }
      }
    }
    std::vector<ValueRange> expected(2, ValueRange{1e9, -1e9});
    for (std::int64_t i = 0; i < size.width * size.height * 2; ++i) {
      ValueRange& range = expected[static_cast<std::size_t>(i % 2)];
      const double value = reinterpret_cast<const float*>(image.bytes.data())[i];
      range.least = std::min(range.least, value);
      range.greatest = std::max(range.greatest, value);
    }
    CHECK(builder.values() == expected);
  }
}

TEST_CASE("the range of values leaves out what isn't finite") {
  const Size size{3, 2};
  const auto range_of = [&](std::vector<float> values, PixelFormat format, bool labels) {
    const auto image = std::make_shared<WholeImage>(size, format);
    std::memcpy(image->bytes.data(), values.data(), std::min(image->bytes.size(), values.size() * sizeof(float)));
    PyramidBuilder builder(PyramidLayout(size, 16, 0), format, labels);
    builder.add(image->rows(0, 2), image);
    return builder.values();
  };
  const PixelFormat floats{SampleType::float32, 1};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  CHECK(range_of({1, nan, -2, infinite, 3, -infinite}, floats, false) == std::vector{ValueRange{-2, 3}});
  CHECK(range_of({nan, nan, nan, nan, nan, nan}, floats, false).empty());
  CHECK(range_of({1, 2, 3, 4, 5, 6}, floats, true).empty());
  CHECK(range_of({1, 2, 3, 4, 5, 6}, luminance_format, false).empty());
}

TEST_CASE("a wide image is reduced in pieces, by several threads at once") {
  std::mt19937 random(3);
  for (const PixelFormat format : {rgb_format, luminance_format, PixelFormat{SampleType::float32, 1}}) {
    const Size size{9001, 70};
    const PyramidLayout layout(size, 16, 8);
    const WholeImage image = test::noise_image(size, format, random);
    compare(
        image, layout, false, [] { return std::int64_t{32}; }, true);
  }
}

TEST_CASE("sums of the brightest image fit at every level") {
  // Up to the levels at which sums need more bits than at the level above.
  for (const SampleType sample : {SampleType::uint8, SampleType::uint16}) {
    const int levels = sample == SampleType::uint8 ? 14 : 10;
    const std::int64_t side = std::int64_t{1} << (levels - 1);
    const PixelFormat format{sample, 1};
    const PyramidLayout layout({side, side}, 256, levels);
    PyramidBuilder builder(layout, format, false);
    const auto band = std::make_shared<WholeImage>(Size{side, 64}, format);
    std::fill(band->bytes.begin(), band->bytes.end(), std::byte{0xFF});
    for (std::int64_t y = 0; y < side; y += 64) {
      auto rows = band->rows(0, 64);
      rows.rect.y = y;
      rows.image = {side, side};
      for (const PyramidTile& job : builder.add(rows, band)) {
        if (job.level < 4) continue;
        for (std::size_t i = 0; i < format.pixel_bytes(); ++i) {
          REQUIRE(job.pixels.data[i] == std::byte{0xFF});
        }
      }
    }
  }
}

}  // namespace
}  // namespace slidestream
