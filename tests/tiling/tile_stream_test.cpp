#include "tiling/tile_stream.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>
#include <thread>
#include <tuple>
#include <vector>

#include "image/mask.hpp"
#include "operators/tissue/preparation.hpp"
#include "support/coded_slides.hpp"
#include "support/temporary_folder.hpp"
#include "support/wide.hpp"
#include "tiling/region_reader.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Pixels = std::vector<std::uint8_t>;

struct Window {
  Pixels pixels;
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int32_t slide = 0;

  bool operator==(const Window&) const = default;
};

/// Slide by slide, window by window, from the whole level in memory.
std::vector<Window> plain_windows(const TileStreamOptions& options) {
  const WindowRequest& request = options.windows;
  std::vector<Window> all;
  for (std::size_t place = 0; place < options.slides.size(); ++place) {
    const auto slide = Slide::open(options.slides[place]);
    const auto index = static_cast<std::size_t>(request.level);
    const Level& level = slide->info().levels[index];
    Pixels whole(static_cast<std::size_t>(level.width * level.height * 3));
    read_rgb(*slide, index, 0, 0, {whole.data(), level.width * 3, level.width, level.height, rgb_format},
             request.on_bad_tile);
    const GridScale scale = {slide->info().downsample_x(index), slide->info().downsample_y(index)};
    std::vector<Window> windows;
    for (std::int64_t y = 0; y < level.height; y += request.step.height) {
      for (std::int64_t x = 0; x < level.width; x += request.step.width) {
        const bool inside = x + request.size.width <= level.width && y + request.size.height <= level.height;
        if (!inside && request.edge == WindowEdge::drop) continue;
        Window window;
        window.pixels.resize(static_cast<std::size_t>(request.size.width * request.size.height * 3));
        const std::int64_t plane = request.size.width * request.size.height;
        for (std::int64_t i = 0; i < plane; ++i) {
          const std::int64_t column = x + i % request.size.width, row = y + i / request.size.width;
          for (int channel = 0; channel < 3; ++channel) {
            const bool planar = options.layout == WindowLayout::planar;
            window.pixels[static_cast<std::size_t>(planar ? channel * plane + i : i * 3 + channel)] =
                column < level.width && row < level.height
                    ? whole[static_cast<std::size_t>((row * level.width + column) * 3 + channel)]
                    : options.fill;
          }
        }
        window.x = static_cast<std::int64_t>(static_cast<double>(x) * scale.x + 0.5);
        window.y = static_cast<std::int64_t>(static_cast<double>(y) * scale.y + 0.5);
        window.slide = static_cast<std::int32_t>(place);
        windows.push_back(std::move(window));
      }
    }
    const std::size_t n = windows.size();
    const auto shard = static_cast<std::size_t>(request.shard), shards = static_cast<std::size_t>(request.shards);
    for (std::size_t i = n * shard / shards; i < n * (shard + 1) / shards; ++i) all.push_back(std::move(windows[i]));
  }
  return all;
}

/// All batches of a stream, and whether they are as long as they should be, and zeros where they have no windows.
std::vector<Window> read_windows(TileStream& stream, const TileStreamOptions& options) {
  const auto bytes = static_cast<std::size_t>(options.windows.size.width * options.windows.size.height * 3);
  std::vector<Window> all;
  TileBatch batch;
  bool is_last = false;
  while (true) {
    const TileStream::State state = stream.next(batch, std::chrono::seconds(60));
    REQUIRE(state != TileStream::State::waiting);
    if (state == TileStream::State::end) break;
    REQUIRE_FALSE(is_last);
    is_last = batch.count < options.batch;
    REQUIRE(batch.count > 0);
    REQUIRE(std::ssize(batch.coords) == 2 * batch.count);
    for (std::int64_t i = 0; i < options.batch; ++i) {
      const std::uint8_t* const begin = batch.pixels->data() + static_cast<std::size_t>(i) * bytes;
      const Pixels pixels(begin, begin + bytes);
      if (i >= batch.count) {
        REQUIRE(pixels == Pixels(bytes, 0));
        continue;
      }
      const auto at = static_cast<std::size_t>(i);
      all.push_back({pixels, batch.coords[2 * at], batch.coords[2 * at + 1], batch.slides[at]});
    }
  }
  return all;
}

/// A slide of 12 x 8 tiles of 32.
std::filesystem::path sound_slide(const TemporaryFolder& folder, const std::string& name, unsigned seed = 1) {
  write_coded_slide(
      folder / name,
      {.coding = TileCoding::jpeg_422, .width = 384, .height = 256, .tile_width = 32, .tile_height = 32, .seed = seed});
  return folder / name;
}

}  // namespace

TEST_CASE("windows are what the whole levels have, whatever the threads and the memory") {
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

TEST_CASE("listed windows come in their order, whatever the threads and the memory") {
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

TEST_CASE("shuffled windows are all windows, in an order that the seed alone decides, and shards part them") {
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

TEST_CASE("a slide that fails ends the stream when its windows are due, and says why") {
  const TemporaryFolder folder;
  TileStreamOptions options;
  options.slides = {sound_slide(folder, "a.svs"), folder / "none.svs", sound_slide(folder, "b.svs")};
  options.windows.size = options.windows.step = {32, 32};
  options.batch = 48;
  TileBatch batch;
  {
    TileStream stream(options);
    for (int i = 0; i < 2; ++i) CHECK(stream.next(batch, std::chrono::seconds(60)) == TileStream::State::batch);
    for (int i = 0; i < 2; ++i) {
      CHECK_THROWS_WITH_AS(stream.next(batch, std::chrono::seconds(60)), doctest::Contains("none.svs: can't be opened"),
                           SlideError);
    }
  }
  write_coded_slide(folder / "none.svs",
                    {.coding = TileCoding::jpeg_420, .tile_width = 32, .tile_height = 32, .bad_tiles = 90});
  TileStream stream(options);
  const auto read_all = [&] {
    while (stream.next(batch, std::chrono::seconds(60)) == TileStream::State::batch) {
    }
  };
  CHECK_THROWS_WITH_AS(read_all(), doctest::Contains("none.svs: level 0 tile "), SlideError);
}

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

TEST_CASE("memory of batches is used again when it was let go, and not before") {
  const auto memory = std::make_shared<BatchMemory>(1 << 12, 2);
  auto first = memory->take();
  std::uint8_t* const place = first->data();
  place[0] = 5;
  CHECK(memory->take()->data() != place);
  first = nullptr;
  first = memory->take();
  const auto second = memory->take();
  CHECK((first->data() == place || second->data() == place));
  // What is handed back early stays readable.
  auto lent = first->data() == place ? first : second;
  lent->hand_back();
  const auto other = memory->take();
  CHECK(other->data() == place);
  CHECK(lent->data()[0] == 5);
}

TEST_CASE("a stream can be left at any time") {
  const TemporaryFolder folder;
  TileStreamOptions options;
  options.slides = {sound_slide(folder, "a.svs"), sound_slide(folder, "b.svs", 2)};
  options.windows.size = {40, 40};
  options.windows.step = {8, 8};
  options.batch = 10;
  options.threads = 3;
  TileBatch kept;
  for (int batches = 0; batches < 4; ++batches) {
    TileStream stream(options);
    for (int i = 0; i < batches; ++i) REQUIRE(stream.next(kept, std::chrono::seconds(60)) == TileStream::State::batch);
    if (batches % 2 == 0) continue;
    stream.close();
    TileBatch none;
    CHECK(stream.next(none, std::chrono::seconds(60)) == TileStream::State::end);
  }
  const std::vector<Window> windows = plain_windows(options);
  CHECK(std::memcmp(kept.pixels->data(), windows[20].pixels.data(), windows[20].pixels.size()) == 0);
}

TEST_CASE("several threads may take the batches of a stream") {
  const TemporaryFolder folder;
  TileStreamOptions options;
  options.slides = {sound_slide(folder, "a.svs"), sound_slide(folder, "b.svs", 2)};
  options.windows.size = options.windows.step = {32, 32};
  options.batch = 5;
  TileStream stream(options);
  std::atomic<std::int64_t> windows{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      TileBatch batch;
      while (stream.next(batch, std::chrono::seconds(60)) == TileStream::State::batch) windows += batch.count;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(windows == TileStream::count_windows(options));
}

TEST_CASE("a child that was forked is told that a stream isn't its own, and may make another") {
#if defined(SLIDESTREAM_SANITIZED)
  MESSAGE("skipped: ThreadSanitizer takes no threads after a fork, and AddressSanitizer's memory may stay locked");
#else
  const TemporaryFolder folder;
  TileStreamOptions options;
  options.slides = {sound_slide(folder, "a.svs")};
  options.windows.size = options.windows.step = {32, 32};
  options.batch = 16;
  auto stream = std::make_unique<TileStream>(options);
  TileBatch batch;
  REQUIRE(stream->next(batch, std::chrono::seconds(60)) == TileStream::State::batch);
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 1;
    try {
      stream->next(batch, std::chrono::seconds(1));
    } catch (const Error&) {
      stream.reset();
      batch = {};
      TileStream own(options);
      TileBatch made;
      status = own.next(made, std::chrono::seconds(60)) == TileStream::State::batch ? 0 : 2;
    }
    ::_exit(status);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(stream->next(batch, std::chrono::seconds(60)) == TileStream::State::batch);
#endif
}
