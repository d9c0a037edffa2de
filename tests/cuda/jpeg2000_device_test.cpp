// The GPU's JPEG 2000 decoder against the CPU's.

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cuda/device_copies.hpp"
#include "cuda/jpeg2000/jpeg2000_batch_decoder.hpp"
#include "cuda/jpeg2000_tiles.hpp"
#include "cuda/jpeg_device_runs.hpp"
#include "runtime/cuda/check.hpp"
#include "support/test_data.hpp"

namespace slidestream::test {
namespace {

using cuda::Jpeg2000Reason;
using runtime::cuda::DeviceMemory;

constexpr std::uint8_t untouched = 0xA5;

/// One tile of a run: what the device was asked, and what it gave.
struct Run {
  const Bytes* bytes = nullptr;
  TileDemand demand;
  cuda::JpegPlacement part{};  // within the tile; `offset` is added to the tile's place in the plane
  Jpeg2000Reason reason = Jpeg2000Reason::none;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> luminance;  // beside RGB
};

/// Memory of tiles, each of its own size: pixels of the format, then luminance beside them.
struct TilePlanes {
  TilePlanes(const std::vector<Run>& runs, const cuda::Jpeg2000BatchLimits& limits)
      : pixel(limits.format.pixel_bytes()) {
    std::size_t end = 0;
    for (const Run& run : runs) {
      begins.push_back(end);
      luminance.push_back(end + pixel * pitch(run) * rows(run));
      end = luminance.back() + (limits.with_luminance ? pitch(run) * rows(run) : 0);
    }
    bytes = end;
  }

  static std::size_t pitch(const Run& run) { return 2 * static_cast<std::size_t>(run.demand.width) + 8; }
  static std::size_t rows(const Run& run) { return static_cast<std::size_t>(run.demand.height) + 200; }

  std::size_t pixel;
  std::vector<std::size_t> begins;
  std::vector<std::size_t> luminance;
  std::size_t bytes;
};

/// All in one batch. Checks that nothing outside the rectangles was written.
void decode(std::vector<Run>& runs, cuda::Jpeg2000BatchLimits limits = {}) {
  const TilePlanes planes(runs, limits);
  limits.tiles = static_cast<std::uint32_t>(runs.size());
  limits.codings = 256;
  for (const Run& run : runs) limits.compressed_bytes += run.bytes->size();
  std::vector<std::byte> memory(cuda::Jpeg2000Batch::upload_bytes(limits) + 64);
  const std::size_t shift = -reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
  cuda::Jpeg2000Batch batch(limits, std::span(memory).subspan(shift, memory.size() - 64));
  Bytes packed;
  std::vector<std::size_t> added;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    cuda::JpegPlacement placement = runs[i].part;
    placement.luminance_offset = planes.luminance[i] + placement.offset;
    placement.luminance_pitch = static_cast<std::uint32_t>(TilePlanes::pitch(runs[i]));
    placement.offset += planes.begins[i];
    placement.pitch = static_cast<std::uint32_t>(planes.pixel * TilePlanes::pitch(runs[i]));
    runs[i].reason = batch.add(*runs[i].bytes, packed.size(), runs[i].demand, placement);
    if (runs[i].reason != Jpeg2000Reason::none) continue;
    added.push_back(i);
    packed.insert(packed.end(), runs[i].bytes->begin(), runs[i].bytes->end());
  }
  packed.resize((packed.size() + 15) / 16 * 16);
  const std::size_t decoder_bytes = cuda::Jpeg2000BatchDecoder::device_bytes(limits);
  const DeviceMemory decoder_memory = some_memory(decoder_bytes), compressed = some_memory(packed.size()),
                     plane = some_memory(planes.bytes), verdicts = some_memory(4 * runs.size());
  SLIDESTREAM_CUDA(cudaMemset(decoder_memory.bytes().data(), 0xDB, decoder_bytes));
  SLIDESTREAM_CUDA(cudaMemset(plane.bytes().data(), untouched, planes.bytes));
  SLIDESTREAM_CUDA(cudaMemset(verdicts.bytes().data(), 0xFF, 4 * runs.size()));
  SLIDESTREAM_CUDA(cudaMemcpy(compressed.bytes().data(), packed.data(), packed.size(), cudaMemcpyHostToDevice));
  cuda::Jpeg2000BatchDecoder decoder(limits, {decoder_memory.bytes().data(), decoder_bytes});
  decoder.enqueue(reinterpret_cast<std::uint8_t*>(plane.bytes().data()),
                  reinterpret_cast<std::uint32_t*>(verdicts.bytes().data()), batch,
                  {compressed.bytes().data(), packed.size()}, nullptr);
  SLIDESTREAM_CUDA(cudaDeviceSynchronize());
  std::vector<std::uint32_t> reasons(added.size());
  SLIDESTREAM_CUDA(cudaMemcpy(reasons.data(), verdicts.bytes().data(), 4 * reasons.size(), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < added.size(); ++i) runs[added[i]].reason = static_cast<Jpeg2000Reason>(reasons[i]);
  std::vector<std::uint8_t> pixels(planes.bytes);
  SLIDESTREAM_CUDA(cudaMemcpy(pixels.data(), plane.bytes().data(), pixels.size(), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto take = [&](std::vector<std::uint8_t>& to, std::size_t begin, std::size_t pitch, std::size_t pixel) {
      for (std::size_t y = 0; y < runs[i].part.height; ++y) {
        std::uint8_t* row = pixels.data() + begin + runs[i].part.offset + y * pitch;
        to.insert(to.end(), row, row + pixel * runs[i].part.width);
        std::memset(row, untouched, pixel * runs[i].part.width);
      }
    };
    const std::size_t pitch = TilePlanes::pitch(runs[i]);
    take(runs[i].pixels, planes.begins[i], planes.pixel * pitch, planes.pixel);
    if (limits.with_luminance) take(runs[i].luminance, planes.luminance[i], pitch, 1);
  }
  REQUIRE(std::all_of(pixels.begin(), pixels.end(), [](std::uint8_t v) { return v == untouched; }));
}

Run whole(const NamedTile& tile, const PixelFormat& format = luminance_format) {
  Run run;
  run.bytes = &tile.bytes;
  run.demand = whole_tile(tile.colour, tile.width, tile.height, format);
  run.part.width = static_cast<std::uint32_t>(tile.width);
  run.part.height = static_cast<std::uint32_t>(tile.height);
  return run;
}

/// Whether the device's part is the CPU's.
bool equal(const Run& run, const std::vector<std::uint8_t>& pixels, std::size_t pixel,
           const std::vector<std::uint8_t>& expected) {
  for (std::size_t y = 0; y < run.part.height; ++y) {
    const auto* row = expected.data() +
                      pixel * ((run.part.from_y + y) * static_cast<std::size_t>(run.demand.width) + run.part.from_x);
    const std::size_t bytes = pixel * run.part.width;
    if (!std::equal(row, row + bytes, pixels.data() + y * bytes)) return false;
  }
  return true;
}
bool equal(const Run& run, const std::vector<std::uint8_t>& expected) {
  return equal(run, run.pixels, run.demand.format.pixel_bytes(), expected);
}

void check_all(const std::vector<NamedTile>& tiles, std::vector<Run>& runs,
               const cuda::Jpeg2000BatchLimits& limits = {}) {
  decode(runs, limits);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CAPTURE(tiles[i].name);
    const auto expected = decode_with_openjpeg(tiles[i].bytes, runs[i].demand);
    REQUIRE(expected.has_value());
    CHECK_MESSAGE(runs[i].reason == Jpeg2000Reason::none, cuda::describe(runs[i].reason));
    CHECK(equal(runs[i], *expected));
    if (!limits.with_luminance) continue;
    TileDemand demand = runs[i].demand;
    demand.format = luminance_format;
    const auto luminance = decode_with_openjpeg(tiles[i].bytes, demand);
    REQUIRE(luminance.has_value());
    CHECK(equal(runs[i], runs[i].luminance, 1, *luminance));
  }
}

TEST_CASE("JPEG 2000 tiles of every kind, whole and in part, in one batch (many)") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  const std::vector<NamedTile> tiles = jpeg2000_tiles_of_every_kind();
  std::mt19937 random(3);
  // At last in waves, in which they have few neighbours.
  const cuda::Jpeg2000BatchLimits limits[] = {{},
                                              {},
                                              {.wave_tiles = 7},
                                              {.format = rgb_format},
                                              {.format = rgb_format, .with_luminance = true, .colour_tiles = 40},
                                              {.format = rgb_format, .with_luminance = true, .wave_tiles = 5}};
  for (int round = 0; round < 6; ++round) {
    std::vector<Run> runs;
    for (const NamedTile& tile : tiles) {
      Run run = whole(tile, limits[round].format);
      if (round % 3 > 0) {
        const auto below = [&random](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
        run.part.offset = below(200);
        run.part.from_x = below(run.part.width);
        run.part.from_y = below(run.part.height);
        run.part.width = 1 + below(run.part.width - run.part.from_x);
        run.part.height = 1 + below(run.part.height - run.part.from_y);
      }
      runs.push_back(run);
    }
    check_all(tiles, runs, limits[round]);
  }
}

TEST_CASE("a few JPEG 2000 tiles for each of the kernels") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  const std::vector<NamedTile> every = jpeg2000_tiles_of_every_kind(), large = jpeg2000_large_tiles();
  std::vector<NamedTile> tiles;
  for (std::size_t i = 0; i < every.size(); i += 9) {
    if (every[i].bytes.size() < 12000) tiles.push_back(every[i]);
  }
  tiles.insert(tiles.end(), large.begin() + 2, large.begin() + 7);
  for (const bool rgb : {false, true}) {
    const PixelFormat& format = rgb ? rgb_format : luminance_format;
    std::vector<Run> runs;
    for (const NamedTile& tile : tiles) runs.push_back(whole(tile, format));
    check_all(tiles, runs, {.format = format, .with_luminance = rgb, .colour_tiles = 20});
  }
}

TEST_CASE("large JPEG 2000 tiles beside small ones (many)") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  std::vector<NamedTile> tiles = jpeg2000_large_tiles();
  const std::vector<NamedTile> small = jpeg2000_tiles_of_every_kind();
  tiles.insert(tiles.end(), small.begin(), small.begin() + 10);
  for (const bool rgb : {false, true}) {
    const PixelFormat& format = rgb ? rgb_format : luminance_format;
    std::vector<Run> runs;
    for (const NamedTile& tile : tiles) {
      runs.push_back(whole(tile, format));
      if (runs.size() % 3 == 1) --runs.back().part.width;
    }
    cuda::Jpeg2000BatchLimits limits{.format = format, .with_luminance = rgb, .state_words = 1U << 20};
    limits.plane_words = 8U << 20;
    limits.colour_tiles = rgb ? 100 : 19;
    check_all(tiles, runs, limits);
  }
}

TEST_CASE("all JPEG 2000 tiles of a real slide (large)") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  const auto root = test_data_root();
  if (!root) return report_skipped("no test data");
  const auto tiles = jpeg2000_tiles_of_slide(*root / "data" / "tcga-cr-7395.svs");
  for (const bool rgb : {false, true}) {
    const PixelFormat& format = rgb ? rgb_format : luminance_format;
    std::vector<Run> runs;
    for (const NamedTile& tile : tiles) runs.push_back(whole(tile, format));
    check_all(tiles, runs, {.format = format, .with_luminance = rgb});
  }
}

TEST_CASE("mutants of JPEG 2000 tiles are flagged by the device, or as the CPU has them (large)") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  const char* wanted = std::getenv("SLIDESTREAM_MUTANTS");
  const std::size_t total = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 4000;
  std::vector<NamedTile> named;
  for (NamedTile& tile : jpeg2000_tiles_of_every_kind()) {
    if (tile.bytes.size() < 9000) named.push_back(std::move(tile));
  }
  std::mt19937 random(wanted != nullptr ? static_cast<unsigned>(total) : 1U);
  constexpr std::size_t batch_size = 1000;
  std::size_t flagged = 0;
  for (std::size_t done = 0; done < total; done += batch_size) {
    const PixelFormat& format = done / batch_size % 2 == 0 ? luminance_format : rgb_format;
    std::vector<Bytes> mutants;
    std::vector<Run> runs;
    for (std::size_t i = 0; i < std::min(batch_size, total - done); ++i) {
      const NamedTile& origin = named[random() % named.size()];
      mutants.push_back(jpeg2000_mutant(origin.bytes, random));
      runs.push_back(whole(origin, format));
    }
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].bytes = &mutants[i];
    decode(runs, {.format = format});
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].reason != Jpeg2000Reason::none) {
        ++flagged;
        continue;
      }
      CAPTURE(done + i);
      const auto expected = decode_with_openjpeg(mutants[i], runs[i].demand);
      REQUIRE(expected.has_value());
      REQUIRE(equal(runs[i], *expected));
    }
  }
  MESSAGE(total << " mutants, " << flagged << " flagged");
  CHECK(flagged < total * 9 / 10);
}

}  // namespace
}  // namespace slidestream::test
