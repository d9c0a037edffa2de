#include "tiling/tile_stream.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <slidestream/error.hpp>
#include <tuple>
#include <vector>

#include "image/mask.hpp"
#include "operators/tissue/preparation.hpp"
#include "stream_windows.hpp"
#include "support/coded_slides.hpp"
#include "support/temporary_folder.hpp"
#include "support/wide.hpp"

using namespace slidestream;
using namespace slidestream::test;

TEST_CASE("windows are what the whole levels have, whatever the threads and the memory (long)") {
  const TemporaryFolder folder;
  std::mt19937 random(7);
  const auto in = [&](int low, int high) { return static_cast<int>(low + random_below(random, high - low + 1)); };
  bool again = false, panes = false, once = false;
  for (int round = 0; round < wide_or_few(60, 30); ++round) {
    CAPTURE(round);
    TileStreamOptions options;
    std::size_t levels = 2;
    for (int i = in(1, 3); i > 0; --i) {
      CodedSlide slide = random_coded_slide(random);
      slide.levels = 2;
      const auto file = folder / (std::to_string(i) + ".svs");
      write_coded_slide(file, slide);
      options.slides.push_back(file);
      levels = std::min(levels, Slide::open(file)->info().levels.size());
    }
    WindowRequest& windows = options.windows;
    windows.size = {in(1, 150), in(1, 150)};
    windows.step = in(0, 2) == 0 ? windows.size : Size{in(10, 200), in(10, 200)};
    windows.level = in(0, static_cast<int>(levels) - 1);
    windows.edge = in(0, 1) == 0 ? WindowEdge::drop : WindowEdge::pad;
    windows.on_bad_tile = BadTilePolicy::white;
    windows.shards = in(0, 2) == 0 ? in(2, 4) : 1;
    windows.shard = in(0, windows.shards - 1);
    options.batch = in(1, 20);
    options.layout = in(0, 1) == 0 ? WindowLayout::interleaved : WindowLayout::planar;
    options.fill = static_cast<std::uint8_t>(in(0, 255));
    options.threads = in(1, 4);
    options.prefetch = in(0, 2);
    options.memory_mib = in(0, 1) == 0 ? 1 : 1024;
    TileStream stream(options);
    const std::vector<Window> windows_read = read_windows(stream, options);
    REQUIRE(windows_read == plain_windows(options));
    CHECK(stream.figures().windows == std::ssize(windows_read));
    CHECK(TileStream::count_windows(options) == std::ssize(windows_read));
    once |= options.memory_mib > 1;
    again |= options.memory_mib == 1;
    panes |= options.layout == WindowLayout::planar;
  }
  CHECK((once && again && panes));
}

TEST_CASE("listed windows come in their order, whatever the threads and the memory (long)") {
  const TemporaryFolder folder;
  std::mt19937 random(11);
  const auto in = [&](int low, int high) { return static_cast<int>(low + random_below(random, high - low + 1)); };
  bool was_left_out = false, was_padded = false, reached_chunks = false;
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    TileStreamOptions options;
    options.windows.size = {in(1, 90), in(1, 90)};
    options.windows.edge = in(0, 1) == 0 ? WindowEdge::drop : WindowEdge::pad;
    options.windows.on_bad_tile = BadTilePolicy::white;
    options.windows.shards = in(1, 3);
    options.windows.shard = in(0, options.windows.shards - 1);
    options.batch = in(1, 9);
    options.layout = in(0, 1) == 0 ? WindowLayout::interleaved : WindowLayout::planar;
    options.threads = in(1, 4);
    options.prefetch = in(0, 2);
    options.memory_mib = in(0, 1) == 0 ? 1 : 1024;
    std::vector<Window> expected;
    for (int i = 0; i < in(1, 3); ++i) {
      const auto file = folder / (std::to_string(i) + ".svs");
      write_coded_slide(file, random_coded_slide(random));
      const auto slide = Slide::open(file);
      const Level& level = slide->info().levels[0];
      options.slides.push_back(file);
      std::vector<WindowCorner>& corners = options.corners.emplace_back();
      for (int n = in(0, 60); n > 0; --n) {
        corners.push_back({in(0, static_cast<int>(level.width) - 1), in(0, static_cast<int>(level.height) - 1)});
        // The same window twice, and several in a row.
        if (in(0, 5) == 0) corners.push_back(corners.front());
        if (in(0, 5) == 0) corners.back().y = corners.front().y;
      }
      // A list of one window is a grid that begins there.
      std::vector<Window> of_slide;
      Pixels whole(static_cast<std::size_t>(level.width * level.height * 3));
      read_rgb(*slide, 0, 0, 0, {whole.data(), level.width * 3, level.width, level.height, rgb_format},
               BadTilePolicy::white);
      for (const WindowCorner& corner : corners) {
        const Size size = options.windows.size;
        const bool is_inside = corner.x + size.width <= level.width && corner.y + size.height <= level.height;
        was_left_out |= !is_inside && options.windows.edge == WindowEdge::drop;
        was_padded |= !is_inside && options.windows.edge == WindowEdge::pad;
        if (!is_inside && options.windows.edge == WindowEdge::drop) continue;
        Window window{Pixels(static_cast<std::size_t>(size.width * size.height * 3), options.fill), corner.x, corner.y,
                      i};
        for (std::int64_t at = 0; at < size.width * size.height; ++at) {
          const std::int64_t x = corner.x + at % size.width, y = corner.y + at / size.width;
          if (x >= level.width || y >= level.height) continue;
          for (std::int64_t channel = 0; channel < 3; ++channel) {
            const bool is_planar = options.layout == WindowLayout::planar;
            window.pixels[static_cast<std::size_t>(is_planar ? channel * size.width * size.height + at
                                                             : at * 3 + channel)] =
                whole[static_cast<std::size_t>((y * level.width + x) * 3 + channel)];
          }
        }
        of_slide.push_back(std::move(window));
      }
      const std::size_t n = of_slide.size();
      const auto shard = static_cast<std::size_t>(options.windows.shard);
      const auto shards = static_cast<std::size_t>(options.windows.shards);
      for (std::size_t k = n * shard / shards; k < n * (shard + 1) / shards; ++k) expected.push_back(of_slide[k]);
    }
    TileStream stream(options);
    CHECK(read_windows(stream, options) == expected);
    CHECK(TileStream::count_windows(options) == std::ssize(expected));
    reached_chunks |= std::ssize(expected) > 8 * options.batch;
  }
  CHECK((was_left_out && was_padded && reached_chunks));
}

TEST_CASE("a position outside of the slide is named") {
  const TemporaryFolder folder;
  TileStreamOptions options;
  options.slides = {sound_slide(folder, "slide.svs")};
  options.corners = {{{0, 0}, {384, 0}}};
  TileStream stream(options);
  TileBatch batch;
  CHECK_THROWS_WITH_AS(stream.next(batch, std::chrono::seconds(60)),
                       doctest::Contains("position 1 is (384, 0); expected one inside of 384 x 256 pixels of level 0"),
                       SlideError);
  options.corners.emplace_back();
  CHECK_THROWS_WITH_AS(check_options(options), "coords holds positions for 2 slides; expected 1, one list per slide",
                       ConfigError);
}

TEST_CASE("shuffled windows are all windows, in an order that the seed alone decides, and shards part them (long)") {
  const TemporaryFolder folder;
  TileStreamOptions options;
  for (unsigned i = 0; i < 19; ++i) {
    options.slides.push_back(sound_slide(folder, std::to_string(i) + ".svs", i + 1));
  }
  options.windows.size = {48, 40};
  options.windows.step = {70, 90};
  options.batch = 7;
  const std::vector<Window> in_order = plain_windows(options);
  const auto place_of = [](const Window& window) { return std::tuple(window.slide, window.y, window.x); };
  const auto sorted = [&](std::vector<Window> windows) {
    std::ranges::sort(windows, {}, place_of);
    return windows;
  };
  const auto read = [&](std::uint64_t seed, int threads, int shard = 0, int shards = 1) {
    TileStreamOptions shuffled = options;
    shuffled.shuffle = seed;
    shuffled.threads = threads;
    shuffled.windows.shard = shard;
    shuffled.windows.shards = shards;
    TileStream stream(shuffled);
    std::vector<Window> windows = read_windows(stream, shuffled);
    CHECK(TileStream::count_windows(shuffled) == std::ssize(windows));
    return windows;
  };
  const std::vector<Window> first = read(1, 3);
  CHECK(first != in_order);
  CHECK(sorted(first) == sorted(in_order));
  CHECK(read(1, 1) == first);
  const std::vector<Window> second = read(2, 2);
  CHECK(second != first);
  CHECK(sorted(second) == sorted(first));
  // Slides are mixed.
  int changes = 0;
  for (std::size_t i = 1; i < first.size(); ++i) changes += first[i].slide != first[i - 1].slide ? 1 : 0;
  CHECK(changes > std::ssize(first) / 2);
  // Each rank has every third.
  std::vector<Window> together;
  for (int shard = 0; shard < 3; ++shard) {
    const std::vector<Window> part = read(1, 2, shard, 3);
    CHECK(std::abs(std::ssize(part) - std::ssize(first) / 3) <= 2);
    together.insert(together.end(), part.begin(), part.end());
  }
  CHECK(sorted(together) == sorted(first));
}

TEST_CASE("a tile is decoded once, or with little memory once for each row of windows") {
  const TemporaryFolder folder;
  TileStreamOptions options;
  options.slides = {sound_slide(folder, "slide.svs")};
  options.windows.size = {64, 64};
  options.windows.step = {16, 16};
  options.batch = 100;
  {
    TileStream stream(options);
    CHECK(read_windows(stream, options) == plain_windows(options));
    CHECK(stream.figures().tiles_decoded == 12 * 8);
  }
  // A batch is 1.2 MB: what one row of windows needs is held anyway.
  options.memory_mib = 1;
  TileStream stream(options);
  CHECK(read_windows(stream, options) == plain_windows(options));
  // Rows of windows begin every 16 rows of pixels, and touch two or three rows of tiles.
  CHECK(stream.figures().tiles_decoded > 12 * 8);
  CHECK(stream.figures().tiles_decoded <= 12 * (7 * 2 + 6 * 3));
}

TEST_CASE("only windows that are tissue, and no tile that they don't touch") {
  const TemporaryFolder folder;
  // Colour in the middle of grey.
  CodedSlide description = {
      .coding = TileCoding::rgb, .width = 512, .height = 512, .tile_width = 64, .tile_height = 64};
  TestTiff tiff;
  tiff.directories.push_back(coded_level(description, false, 1));
  auto& tiles = tiff.directories[0].tiles;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const bool tissue = i % 8 >= 2 && i % 8 < 5 && i / 8 >= 3 && i / 8 < 6;
    for (std::size_t at = 0; at < tiles[i].size(); ++at) {
      tiles[i][at] = static_cast<std::byte>(!tissue ? 230 : at % 3 == 1 ? 60 : 200);
    }
  }
  const auto file = folder.write("slide.svs", tiff.bytes());
  TileStreamOptions options;
  options.slides = {file};
  options.windows.size = options.windows.step = {64, 64};
  options.windows.tissue = true;
  options.open.mpp = 8.0;
  options.batch = 4;
  TileStream stream(options);
  std::vector<Window> expected;
  const auto slide = Slide::open(file, options.open);
  const MaskTable mask(*operators::prepare_mask({*slide, 0, file, 8.0}, Config{}));
  TileStreamOptions all = options;
  all.windows.tissue = false;
  for (Window& window : plain_windows(all)) {
    if (mask.is_tissue({window.x, window.y, 64, 64}, {1, 1}, 0.5)) expected.push_back(std::move(window));
  }
  CHECK(expected.size() >= 4);
  CHECK(expected.size() <= 16);
  CHECK(read_windows(stream, options) == expected);
  CHECK(stream.figures().tiles_decoded == std::ssize(expected));
}

TEST_CASE("options that mean nothing are refused in one line") {
  const auto message_of = [](const auto& change) -> std::string {
    TileStreamOptions options;
    change(options);
    try {
      check_options(options);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  CHECK(message_of([](TileStreamOptions&) {}).empty());
  CHECK(message_of([](TileStreamOptions& o) { o.windows.size.width = 0; }) == "size is 0; expected 1 to 65536");
  CHECK(message_of([](TileStreamOptions& o) { o.windows.step.height = -1; }) == "step is -1; expected 1 to 65536");
  CHECK(message_of([](TileStreamOptions& o) { o.batch = 0; }) == "batch is 0; expected 1 to 1048576");
  CHECK(message_of([](TileStreamOptions& o) { o.windows.shard = 1; }) ==
        "shard is (1, 1); expected (i, n) with 0 <= i < n");
  CHECK(message_of([](TileStreamOptions& o) { o.windows.mpp = 0.0; }).starts_with("mpp is 0"));
  CHECK(message_of([](TileStreamOptions& o) { o.windows.tissue_share = 1.5; }).starts_with("tissue_share is 1.5"));
}
