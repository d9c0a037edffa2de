#include "image/pyramid_builder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
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
