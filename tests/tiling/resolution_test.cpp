#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>
#include <utility>
#include <vector>

#include "image/views.hpp"
#include "support/coded_slides.hpp"
#include "support/temporary_folder.hpp"
#include "tiling/region_reader.hpp"
#include "tiling/tile_stream.hpp"

using namespace slidestream;
using namespace slidestream::test;

TEST_CASE("a resolution is a level of that pixel size, or made from the next finer one") {
  const TemporaryFolder folder;
  const auto file = folder / "slide.svs";
  write_coded_slide(file, {.coding = TileCoding::rgb, .width = 400, .height = 200, .mpp = 0.5, .levels = 2});
  const SlideInfo info = Slide::open(file)->info();
  const auto chosen = [&](double mpp) {
    const Resolution resolution = choose_resolution(info, 0, mpp, "");
    return std::pair(resolution.level, resolution.factor);
  };
  CHECK(chosen(1.01) == std::pair<std::size_t, std::int64_t>(1, 65536));
  CHECK(chosen(0.495) == std::pair<std::size_t, std::int64_t>(0, 65536));
  CHECK(chosen(0.75) == std::pair<std::size_t, std::int64_t>(0, 98304));
  CHECK(chosen(3.0) == std::pair<std::size_t, std::int64_t>(1, 196608));
  CHECK_THROWS_WITH_AS(choose_resolution(info, 0, 0.4, ""), doctest::Contains("slide.svs: tiles at 0.4"), SlideError);
  CHECK_THROWS_WITH_AS(choose_resolution(info, 0, 500.0, ""), doctest::Contains("256 times as coarse"), SlideError);
  CHECK(choose_resolution(info, 1, {}, "").level == 1);
  CHECK_THROWS_WITH_AS(choose_resolution(info, 2, {}, ""), doctest::Contains("has no level 2; its levels are 0 to 1"),
                       SlideError);
}

TEST_CASE("windows and regions of another resolution are parts of the level's resampled image") {
  const TemporaryFolder folder;
  std::mt19937 random(8);
  RegionReader reader;
  for (const double mpp : {0.6, 1.0, 1.31, 4.7}) {
    const auto file = folder / "slide.svs";
    write_coded_slide(
        file,
        {.coding = TileCoding::rgb, .width = 413, .height = 301, .tile_width = 64, .tile_height = 48, .mpp = 0.5});
    const auto slide = Slide::open(file);
    const Resolution resolution = choose_resolution(slide->info(), 0, mpp, "");
    std::vector<std::uint8_t> level(413 * 301 * 3);
    read_rgb(*slide, 0, 0, 0, {level.data(), 413 * 3, 413, 301, rgb_format});
    const Size size = resolution.size_of(slide->info().levels[0]);
    std::vector<std::uint8_t> whole(static_cast<std::size_t>(size.width * size.height * 3));
    const auto view = [](auto& pixels, const Size& image) {
      return PixelView<MemorySpace::host>{reinterpret_cast<std::byte*>(pixels.data()),
                                          image.width * 3,
                                          {0, 0, image.width, image.height},
                                          image,
                                          rgb_format};
    };
    const PixelView<MemorySpace::host> from = view(level, {413, 301});
    resample_area(view(whole, size), {from.data, from.pitch, from.rect, from.image, from.format}, resolution.factor);
    const auto part_of_whole = [&](std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height) {
      std::vector<std::uint8_t> part(static_cast<std::size_t>(width * height * 3), 9);
      for (std::int64_t j = std::max<std::int64_t>(0, -y); j < std::min(height, size.height - y); ++j) {
        for (std::int64_t i = std::max<std::int64_t>(0, -x); i < std::min(width, size.width - x); ++i) {
          std::memcpy(&part[static_cast<std::size_t>((j * width + i) * 3)],
                      &whole[static_cast<std::size_t>(((y + j) * size.width + x + i) * 3)], 3);
        }
      }
      return part;
    };
    for (int i = 0; i < 12; ++i) {
      const std::int64_t x = random_below(random, size.width + 40) - 20;
      const std::int64_t y = random_below(random, size.height + 40) - 20;
      const std::int64_t width = 1 + random_below(random, 200), height = 1 + random_below(random, 200);
      std::vector<std::uint8_t> region(static_cast<std::size_t>(width * height * 3), 77);
      reader.read(*slide, resolution, x, y, {region.data(), width * 3, width, height, rgb_format}, 9,
                  BadTilePolicy::fail);
      REQUIRE(region == part_of_whole(x, y, width, height));
    }
    TileStreamOptions options;
    options.slides = {file, file};
    options.windows.mpp = mpp;
    options.windows.size = {40, 23};
    options.windows.step = {31, 29};
    options.windows.edge = WindowEdge::pad;
    options.fill = 9;
    options.batch = 7;
    options.threads = 3;
    TileStream stream(options);
    TileBatch batch;
    std::int64_t number = 0;
    const std::int64_t across = (size.width + 30) / 31, down = (size.height + 28) / 29;
    while (stream.next(batch, std::chrono::seconds(60)) == TileStream::State::batch) {
      for (std::int64_t i = 0; i < batch.count; ++i, ++number) {
        const std::int64_t x = number % across * 31, y = number / across % down * 29;
        const std::uint8_t* const window = batch.pixels->data() + i * 40 * 23 * 3;
        REQUIRE(std::vector<std::uint8_t>(window, window + 40 * 23 * 3) == part_of_whole(x, y, 40, 23));
        const auto at_level0 = [&](std::int64_t at) {
          return static_cast<std::int64_t>(std::floor(static_cast<double>(at) * resolution.reduction() + 0.5));
        };
        CHECK(batch.coords[static_cast<std::size_t>(2 * i)] == at_level0(x));
        CHECK(batch.coords[static_cast<std::size_t>(2 * i + 1)] == at_level0(y));
      }
    }
    CHECK(number == 2 * across * down);
    CHECK(stream.figures().tiles_decoded <= 2 * 7 * 7);
  }
}
