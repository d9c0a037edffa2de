// The GPU's JPEG decoder against the CPU's.

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cuda/jpeg_device_runs.hpp"
#include "cuda/jpeg_tiles.hpp"
#include "support/test_data.hpp"

namespace slidestream::test {
namespace {

using cuda::JpegReason;
using Pixels = std::vector<std::uint8_t>;

constexpr PixelFormat formats[] = {luminance_format, rgb_format};

DeviceTile whole(const NamedTile& tile, const PixelFormat& format) {
  return {&tile.bytes, whole_tile(tile.colour, tile.width, tile.height, format), 0, 0, tile.width, tile.height};
}

/// More tiles where RGB is wanted.
std::vector<NamedTile> tiles_for(const PixelFormat& format) {
  std::vector<NamedTile> named = tiles_of_every_kind();
  if (format == rgb_format) {
    for (NamedTile& tile : tiles_for_rgb()) named.push_back(std::move(tile));
  }
  return named;
}

void check_all(const std::vector<NamedTile>& named, const std::vector<DeviceTile>& tiles, DeviceRuns& runs,
               std::int64_t lanes) {
  const std::vector<DeviceResult> results = runs.run(tiles, {}, lanes);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    CAPTURE(named[i].name);
    const auto expected = decode_with_libjpeg(named[i].bytes, tiles[i].demand);
    REQUIRE(expected.has_value());
    CHECK_MESSAGE(results[i].reason == JpegReason::none, cuda::describe(results[i].reason));
    CHECK(results[i].pixels == part_of(*expected, tiles[i]));
    if (results[i].luminance.empty()) continue;
    const DeviceTile wanted = luminance_of(tiles[i]);
    CHECK(results[i].luminance == part_of(*decode_with_libjpeg(named[i].bytes, wanted.demand), wanted));
  }
}

cuda::JpegBatchLimits limits_for(const PixelFormat& format) {
  return {.tiles = 1024,
          .compressed_bytes = 32U << 20,
          .segments = 1U << 16,
          .format = format,
          .component_bytes = format == rgb_format ? 128U << 20 : 0U};
}

TEST_CASE("tiles of every kind, all in one batch") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  for (const PixelFormat& format : formats) {
    CAPTURE(format.channels);
    const std::vector<NamedTile> named = tiles_for(format);
    DeviceRuns runs(limits_for(format));
    std::vector<DeviceTile> tiles;
    for (const NamedTile& tile : named) tiles.push_back(whole(tile, format));
    for (const std::int64_t lanes : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 30})
      check_all(named, tiles, runs, lanes);
  }
}

TEST_CASE("parts of tiles, anywhere in the plane, RGB with its luminance beside it") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  for (const PixelFormat& format : formats) {
    CAPTURE(format.channels);
    const std::vector<NamedTile> named = tiles_for(format);
    cuda::JpegBatchLimits limits = limits_for(format);
    limits.with_luminance = format == rgb_format;
    DeviceRuns runs(limits);
    std::mt19937 random(3);
    for (int round = 0; round < 4; ++round) {
      std::vector<DeviceTile> tiles;
      for (const NamedTile& tile : named) {
        DeviceTile wanted = whole(tile, format);
        const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
        wanted.from_x = round % 2 == 0 ? 0 : below(tile.width);
        wanted.from_y = below(tile.height);
        wanted.width = 1 + below(tile.width - wanted.from_x);
        wanted.height = 1 + below(tile.height - wanted.from_y);
        wanted.misalignment = round == 0 ? 0 : round == 1 ? 16 * below(4) : round == 2 ? 8 * below(8) : below(64);
        if (tile.name.starts_with("grey") && below(2) == 0) wanted.demand.colour = Colour::grey_inverted;
        tiles.push_back(wanted);
      }
      check_all(named, tiles, runs, -1);
    }
  }
}

TEST_CASE("batches of very different sizes at once, from as many threads") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  // So many small tiles that a block's tables and lanes take another amount of shared memory than a single tile's.
  const NamedTile tile = make_tile(64, 64, {}, 91);
  cuda::JpegBatchLimits limits = limits_for(luminance_format);
  limits.tiles = 4096;
  const auto expected = decode_with_libjpeg(tile.bytes, whole(tile, luminance_format).demand);
  REQUIRE(expected.has_value());
  std::atomic<int> wrong = 0;
  std::atomic<int> failed = 0;
  const auto decode = [&](std::size_t count, int rounds) {
    try {
      DeviceRuns runs(limits);
      const std::vector<DeviceTile> tiles(count, whole(tile, luminance_format));
      for (int round = 0; round < rounds; ++round) {
        for (const DeviceResult& result : runs.run(tiles, {}, 0)) wrong += result.pixels == *expected ? 0 : 1;
      }
    } catch (const std::exception& error) {
      if (failed++ == 0) MESSAGE(error.what());
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(decode, 4000, 25);
  for (int i = 0; i < 3; ++i) threads.emplace_back(decode, 1, 1000);
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  CHECK(wrong == 0);
}

TEST_CASE("large tiles, cut into pieces or not") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  for (const PixelFormat& format : formats) {
    CAPTURE(format.channels);
    std::vector<NamedTile> named;
    using Coding = TileOptions::Coding;
    using Content = TileOptions::Content;
    for (const Coding coding : {Coding::ycbcr, Coding::grey, Coding::rgb}) {
      for (const Content content : {Content::texture, Content::flat, Content::noise}) {
        TileOptions options{.coding = coding, .quality = 60, .content = content};
        if (coding != Coding::ycbcr) options.horizontal = options.vertical = 1;
        named.push_back(make_tile(1024, 1024, options, 77));
        named.push_back(make_tile(1000, 333, options, 78));
        options.restart_interval = 20;
        named.push_back(make_tile(2048, 256, options, 79));
        options.restart_interval = 0;
        options.optimised = true;
        named.push_back(make_tile(512, 520, options, 80));
      }
    }
    named.push_back(make_tile(777, 555, {.horizontal = 1, .vertical = 2}, 81));
    named.push_back(make_tile(777, 555, {.horizontal = 2, .vertical = 1}, 82));
    named.push_back(make_tile(1024, 555, {.horizontal = 1, .vertical = 1}, 83));
    named.push_back(make_tile(1024, 555, {.horizontal = 4, .vertical = 2}, 84));
    DeviceRuns runs(limits_for(format));
    std::vector<DeviceTile> tiles;
    for (const NamedTile& tile : named) tiles.push_back(whole(tile, format));
    for (const std::int64_t lanes : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 30, std::int64_t{900}}) {
      check_all(named, tiles, runs, lanes);
    }
  }
}

TEST_CASE("mutants are flagged, or as the CPU has them") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  const char* wanted = std::getenv("SLIDESTREAM_MUTANTS");
  const std::size_t total = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 8000;
  std::vector<NamedTile> named;
  for (NamedTile& tile : tiles_of_every_kind()) {
    if (tile.bytes.size() < 9000) named.push_back(std::move(tile));
  }
  named.push_back(make_tile(256, 128, {}, 5));
  named.push_back(make_tile(256, 128, {.coding = TileOptions::Coding::rgb, .horizontal = 1, .vertical = 1}, 6));
  constexpr std::size_t batch_size = 2000;
  cuda::JpegBatchLimits limits{
      .tiles = batch_size, .compressed_bytes = 80U << 20, .codings = batch_size, .segments = 1U << 18};
  DeviceRuns luminance_runs(limits);
  limits.format = rgb_format;
  limits.component_bytes = std::uint64_t{3} << 30;
  DeviceRuns rgb_runs(limits);
  std::mt19937 random(wanted != nullptr ? static_cast<unsigned>(total) : 1U);
  std::size_t flagged = 0;
  std::size_t by_device = 0;
  for (std::size_t done = 0; done < total; done += batch_size) {
    std::vector<Bytes> mutants;
    std::vector<const NamedTile*> origins;
    for (std::size_t i = 0; i < std::min(batch_size, total - done); ++i) {
      origins.push_back(&named[random() % named.size()]);
      mutants.push_back(mutate(origins.back()->bytes, random));
    }
    const bool rgb = done / batch_size % 2 != 0;
    std::vector<DeviceTile> tiles;
    for (std::size_t i = 0; i < mutants.size(); ++i) {
      tiles.push_back(whole(*origins[i], rgb ? rgb_format : luminance_format));
      tiles.back().bytes = &mutants[i];
    }
    const std::vector<DeviceResult> results =
        (rgb ? rgb_runs : luminance_runs).run(tiles, {}, done / batch_size % 4 < 2 ? -1 : std::int64_t{1} << 30);
    for (std::size_t i = 0; i < mutants.size(); ++i) {
      if (results[i].reason != JpegReason::none) {
        ++flagged;
        if (results[i].reason >= JpegReason::bad_code) ++by_device;
        continue;
      }
      CAPTURE(origins[i]->name);
      CAPTURE(done + i);
      const auto expected = decode_with_libjpeg(mutants[i], tiles[i].demand);
      REQUIRE(expected.has_value());
      REQUIRE(results[i].pixels == *expected);
    }
  }
  MESSAGE(total << " mutants, " << flagged << " flagged, " << by_device << " of them by the device");
  CHECK(by_device > total / 10);
  CHECK(flagged < total);
}

}  // namespace
}  // namespace slidestream::test
