#include "tiling/region_reader.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <slidestream/error.hpp>
#include <vector>

#include "slide/tile_reader.hpp"
#include "support/coded_slides.hpp"
#include "support/temporary_folder.hpp"
#include "tiling/channels.hpp"

using namespace slidestream;
using namespace slidestream::test;

TEST_CASE("a region is what the level has there, and the fill value beyond") {
  const TemporaryFolder folder;
  RegionReader reader;
  std::mt19937 random(5);
  for (int round = 0; round < 25; ++round) {
    CodedSlide description = random_coded_slide(random);
    description.bad_tiles = description.damaged_tiles = 0;
    const auto file = folder / "slide.svs";
    write_coded_slide(file, description);
    const auto slide = Slide::open(file);
    const Level& level = slide->info().levels[0];
    std::vector<std::uint8_t> whole(static_cast<std::size_t>(level.width * level.height * 3));
    read_rgb(*slide, 0, 0, 0, {whole.data(), level.width * 3, level.width, level.height, rgb_format});
    for (int i = 0; i < 8; ++i) {
      const std::int64_t x = random_below(random, level.width + 200) - 100;
      const std::int64_t y = random_below(random, level.height + 200) - 100;
      const std::int64_t width = 1 + random_below(random, 300), height = 1 + random_below(random, 300);
      std::vector<std::uint8_t> region(static_cast<std::size_t>(width * height * 3), 77), expected(region.size(), 9);
      for (std::int64_t row = std::max<std::int64_t>(0, -y); row < std::min(height, level.height - y); ++row) {
        for (std::int64_t column = std::max<std::int64_t>(0, -x); column < std::min(width, level.width - x); ++column) {
          std::memcpy(&expected[static_cast<std::size_t>((row * width + column) * 3)],
                      &whole[static_cast<std::size_t>(((y + row) * level.width + x + column) * 3)], 3);
        }
      }
      reader.read(*slide, 0, x, y, {region.data(), width * 3, width, height, rgb_format}, 9, BadTilePolicy::fail);
      REQUIRE(region == expected);
    }
  }
}

TEST_CASE("a part of a tile is decoded as in the whole tile, and whatever is damaged shows in every part (long)") {
  const TemporaryFolder folder;
  std::mt19937 random(11);
  int bad = 0, sound = 0;
  for (int round = 0; round < 40; ++round) {
    CodedSlide description = random_coded_slide(random);
    description.bad_tiles = 0;
    description.damaged_tiles = 60;
    const auto file = folder / "slide.svs";
    write_coded_slide(file, description);
    const auto slide = Slide::open(file);
    const Level& level = slide->info().levels[0];
    TileReader reader;
    for (std::int64_t tile = 0; tile < std::min<std::int64_t>(level.columns * level.rows, 12); ++tile) {
      const auto read = [&](std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height) {
        std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height * 3));
        try {
          reader.read(*slide, 0, tile, x, y, {pixels.data(), width * 3, width, height, rgb_format},
                      BadTilePolicy::fail);
        } catch (const SlideError&) {
          pixels.clear();
        }
        return pixels;
      };
      const std::vector<std::uint8_t> whole = read(0, 0, level.tile_width, level.tile_height);
      ++(whole.empty() ? bad : sound);
      for (int i = 0; i < 6; ++i) {
        const std::int64_t x = random_below(random, level.tile_width), y = random_below(random, level.tile_height);
        const std::int64_t width = 1 + random_below(random, level.tile_width - x);
        const std::int64_t height = 1 + random_below(random, level.tile_height - y);
        std::vector<std::uint8_t> expected;
        for (std::int64_t row = y; row < y + height && !whole.empty(); ++row) {
          const auto begin = whole.begin() + (row * level.tile_width + x) * 3;
          expected.insert(expected.end(), begin, begin + width * 3);
        }
        REQUIRE(read(x, y, width, height) == expected);
      }
    }
  }
  CHECK(bad >= 20);
  CHECK(sound >= 20);
}

TEST_CASE("a region with a bad tile fails and names the tile, or is white there") {
  const TemporaryFolder folder;
  const auto file = folder / "slide.svs";
  write_coded_slide(file, {.coding = TileCoding::jpeg_420, .width = 200, .height = 200, .bad_tiles = 16});
  const auto slide = Slide::open(file);
  RegionReader reader;
  std::vector<std::uint8_t> pixels(200 * 200 * 3);
  const HostPixels out = {pixels.data(), 600, 200, 200, rgb_format};
  CHECK_THROWS_WITH_AS(reader.read(*slide, 0, 0, 0, out, 0, BadTilePolicy::fail),
                       doctest::Contains("slide.svs: level 0 tile "), SlideError);
  reader.read(*slide, 0, 0, 0, out, 0, BadTilePolicy::white);
  std::vector<std::uint8_t> plain(pixels.size());
  read_rgb(*slide, 0, 0, 0, {plain.data(), 600, 200, 200, rgb_format}, BadTilePolicy::white);
  CHECK(pixels == plain);
}

TEST_CASE("channels are put apart for any number of pixels") {
  for (std::int64_t count = 0; count < 300; ++count) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * count)), red(static_cast<std::size_t>(count) + 1, 1);
    for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i * 7);
    std::vector<std::uint8_t> green = red, blue = red;
    split_channels(red.data(), green.data(), blue.data(), rgb.data(), count);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      REQUIRE(red[i] == rgb[3 * i]);
      REQUIRE(green[i] == rgb[3 * i + 1]);
      REQUIRE(blue[i] == rgb[3 * i + 2]);
    }
    CHECK((red.back() == 1 && green.back() == 1 && blue.back() == 1));
  }
}
