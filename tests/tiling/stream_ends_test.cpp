#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <slidestream/error.hpp>
#include <thread>
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
