#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <slidestream/error.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "stream_windows.hpp"
#include "support/coded_slides.hpp"
#include "support/temporary_folder.hpp"
#include "tiling/tile_stream.hpp"

using namespace slidestream;
using namespace slidestream::test;

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

TEST_CASE("tiles that became white are told once, when all windows of their slide were given") {
  const TemporaryFolder folder;
  const auto holed_slide = [&](const std::string& name, unsigned seed) {
    write_coded_slide(folder / name, {.coding = TileCoding::jpeg_422,
                                      .width = 384,
                                      .height = 256,
                                      .tile_width = 32,
                                      .tile_height = 32,
                                      .seed = seed,
                                      .missing_tiles = 3,
                                      .bad_tiles = 2});
    return folder / name;
  };
  const auto line_of = [](const std::filesystem::path& file) {
    const auto slide = Slide::open(file);
    std::int64_t missing = 0, bad = 0;
    for (std::int64_t tile = 0; tile < 12 * 8; ++tile) {
      const std::uint64_t length = slide->tile(0, tile).length;
      missing += length == 0 ? 1 : 0;
      bad += length == 7 ? 1 : 0;
    }
    REQUIRE((missing > 0 && bad > 0));
    return file.string() + ": " + std::to_string(missing) + " missing and " + std::to_string(bad) +
           " bad tiles, taken as white";
  };
  TileStreamOptions options;
  options.slides = {holed_slide("a.svs", 1), sound_slide(folder, "b.svs"), holed_slide("c.svs", 2)};
  options.windows.size = {32, 32};
  options.windows.step = {16, 16};
  options.windows.on_bad_tile = BadTilePolicy::white;
  options.batch = 5;
  // Each line, and the slide of the last window that was given before it; -1 at the end.
  using Told = std::vector<std::pair<std::string, std::int32_t>>;
  const auto told_by = [](const TileStreamOptions& of) {
    TileStream stream(of);
    TileBatch batch;
    Told told;
    bool is_over = false;
    while (!is_over) {
      const TileStream::State state = stream.next(batch, std::chrono::seconds(60));
      REQUIRE(state != TileStream::State::waiting);
      is_over = state == TileStream::State::end;
      for (const std::string& line : of.warnings->take()) told.push_back({line, is_over ? -1 : batch.slides.back()});
    }
    return told;
  };
  const std::string first = line_of(options.slides[0]), last = line_of(options.slides[2]);
  options.warnings = std::make_shared<OpeningWarnings>();
  CHECK(told_by(options) == Told{{first, 1}, {last, -1}});
  CHECK(told_by(options).empty());
  options.warnings = std::make_shared<OpeningWarnings>();
  options.shuffle = 3;
  CHECK(told_by(options) == Told{{first, -1}, {last, -1}});
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
