// JPEG 2000 decoding on a GPU: `jpeg2000_gpu_bench SLIDE... [--format luminance|tissue|rgb|both] [--tiles N,N,...]
// [--repeat N] [--openjpeg] [--write-tiles FILE] [--json FILE]`.
//
// The tiles of all of a slide's levels, repeated at random to N tiles a batch, go from compressed bytes in device
// memory to luminance in a plane, to RGB, and to both; tissue is luminance of tiles with hardly any white. Every tile
// of the last run is compared with the CPU decoder's; of both RGB is. With --openjpeg the CPU's decoder takes the same
// tiles on all cores. FILE gets a slide's tiles for other decoders: bytes and their number before, 32 bits,
// little-endian.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cuda/jpeg2000/jpeg2000_batch_decoder.hpp"
#include "gpu_memory.hpp"
#include "runtime/cuda/check.hpp"
#include "tile_options.hpp"

namespace {

using namespace slidestream;

constexpr const char* tissue = "tissue";  ///< beside what all benchmarks of tiles have

struct Options : bench::TileOptions {
  Options() : TileOptions{{}, {42000, 16384, 1024}, 7, {}} {}
  std::vector<std::string> formats = {"luminance", tissue, "rgb", "both"};
  bool openjpeg = false;
  std::string tiles_file;  ///< empty: none
};

/// The distinct tiles of a slide with their pixels, all of one size.
struct Tiles {
  struct Place {
    std::size_t level;
    std::int64_t tile;
  };

  std::string name;
  std::shared_ptr<const Slide> slide;
  std::vector<Place> places;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  Colour colour = Colour::rgb;
  PixelFormat format;
  bool with_luminance = false;  ///< beside RGB
  std::vector<std::vector<std::byte>> bytes;
  std::vector<std::vector<std::uint8_t>> pixels;

  std::size_t tile_bytes() const { return format.pixel_bytes() * width * height; }
};

/// Whether hardly any pixel, less than one in twenty, is nearly white.
bool is_tissue(const std::vector<std::uint8_t>& luminance) {
  constexpr std::uint8_t nearly_white = 220;
  const auto white = std::ranges::count_if(luminance, [](std::uint8_t value) { return value >= nearly_white; });
  return static_cast<std::size_t>(white) * 20 < luminance.size();
}

/// None where a slide has no tissue.
Tiles read_tiles(const std::string& path, const std::string& wanted) {
  Tiles tiles;
  tiles.slide = Slide::open(path);
  const auto& slide = tiles.slide;
  bool any = false;
  tiles.format = wanted == "rgb" || wanted == "both" ? rgb_format : luminance_format;
  tiles.with_luminance = wanted == "both";
  tiles.name = std::filesystem::path(path).stem().string() + (wanted == "luminance" ? "" : "_" + wanted);
  TileDecoder decoder;
  for (std::size_t l = 0; l < slide->info().levels.size(); ++l) {
    const Level& level = slide->info().levels[l];
    if (level.codec != Codec::jpeg2000) continue;
    if (tiles.bytes.empty()) {
      tiles.width = static_cast<std::uint32_t>(level.tile_width);
      tiles.height = static_cast<std::uint32_t>(level.tile_height);
      tiles.colour = level.colour;
    }
    if (tiles.width != level.tile_width || tiles.height != level.tile_height) continue;
    for (std::int64_t i = 0; i < level.columns * level.rows && tiles.bytes.size() < 2000; ++i) {
      const TileRange range = slide->tile(l, i);
      if (range.length == 0) continue;
      std::vector<std::byte> bytes(range.length);
      slide->read(range.offset, bytes);
      std::vector<std::uint8_t> pixels(tiles.tile_bytes());
      decoder.decode(
          *slide, l, i, bytes, 0, 0,
          {pixels.data(), tiles.format.channels * level.tile_width, level.tile_width, level.tile_height, tiles.format});
      any = true;
      if (wanted == tissue && !is_tissue(pixels)) continue;
      tiles.bytes.push_back(std::move(bytes));
      tiles.pixels.push_back(std::move(pixels));
      tiles.places.push_back({l, i});
    }
  }
  if (!any) throw SlideError(path + ": no JPEG 2000 tiles");
  return tiles;
}

void write_tiles(const Tiles& tiles, const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  const auto number = [&out](std::size_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    out.write(reinterpret_cast<const char*>(&word), sizeof(word));
  };
  const auto write = [&out](const auto& bytes) {
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  number(tiles.width);
  number(tiles.height);
  number(static_cast<std::size_t>(tiles.format.channels));
  for (std::size_t i = 0; i < tiles.bytes.size(); ++i) {
    number(tiles.bytes[i].size());
    write(tiles.bytes[i]);
    write(tiles.pixels[i]);
  }
  if (!out.flush()) throw SlideError(file + ": can't be written");
}

/// The CPU's decoder on all cores, over the tiles in turn for some seconds.
nlohmann::json run_openjpeg(const Tiles& tiles) {
  constexpr std::chrono::seconds time{2};
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> taken = 0;
  std::atomic<std::size_t> wrong = 0;
  const auto before = std::chrono::steady_clock::now();
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < cores; ++i) {
    threads.emplace_back([&] {
      TileDecoder decoder;
      std::vector<std::uint8_t> pixels(tiles.tile_bytes());
      while (std::chrono::steady_clock::now() - before < time) {
        const std::size_t tile = taken++ % tiles.bytes.size();
        decoder.decode(*tiles.slide, tiles.places[tile].level, tiles.places[tile].tile, tiles.bytes[tile], 0, 0,
                       {pixels.data(), tiles.format.channels * std::int64_t{tiles.width}, tiles.width, tiles.height,
                        tiles.format});
        if (pixels != tiles.pixels[tile]) ++wrong;
      }
    });
  }
  threads.clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  const double rate = static_cast<double>(taken) * tiles.width * tiles.height / seconds / 1e9;
  std::printf("%-24s OpenJPEG on %u cores: %.3f Gpx/s\n", tiles.name.c_str(), cores, rate);
  return {{"slide", tiles.name + "_openjpeg"},
          {"tile", {tiles.width, tiles.height}},
          {"tiles", cores},
          {"gpx_per_s", rate},
          {"flagged", 0},
          {"wrong", wrong.load()}};
}

/// A batch's tiles in device memory: which stands where is left to chance.
struct Placed {
  std::vector<std::size_t> chosen;
  std::vector<std::size_t> offsets;
  std::vector<std::byte> bytes;
};

/// Batches of more compressed bytes are left out: slots are hardly as large.
constexpr std::uint64_t most_batch_bytes = std::uint64_t{2} << 30;

/// About the bytes of such a batch.
std::uint64_t batch_bytes(const Tiles& tiles, std::uint32_t count) {
  std::uint64_t bytes = 0;
  for (const auto& tile : tiles.bytes) bytes += tile.size();
  return bytes / tiles.bytes.size() * count;
}

Placed place(const Tiles& tiles, std::uint32_t count) {
  std::mt19937 random(1);
  Placed placed;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t tile = i < tiles.bytes.size() ? i : random() % tiles.bytes.size();
    placed.chosen.push_back(tile);
    placed.offsets.push_back(placed.bytes.size());
    placed.bytes.insert(placed.bytes.end(), tiles.bytes[tile].begin(), tiles.bytes[tile].end());
  }
  placed.bytes.resize((placed.bytes.size() + 15) / 16 * 16);
  return placed;
}

/// Tiles below each other, each with rows of its own: how many of those that the device vouches for aren't the CPU's.
std::size_t count_wrong(const Tiles& tiles, const Placed& placed, const std::vector<std::uint32_t>& reasons,
                        const std::byte* plane) {
  const std::size_t tile_bytes = tiles.tile_bytes();
  constexpr std::size_t at_once = 1024;
  std::vector<std::uint8_t> band(at_once * tile_bytes);
  std::size_t wrong = 0;
  for (std::size_t first = 0; first < reasons.size(); first += at_once) {
    const std::size_t count = std::min(at_once, reasons.size() - first);
    SLIDESTREAM_CUDA(cudaMemcpy(band.data(), plane + first * tile_bytes, count * tile_bytes, cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::uint8_t>& expected = tiles.pixels[placed.chosen[first + i]];
      const bool equal = std::memcmp(band.data() + i * tile_bytes, expected.data(), tile_bytes) == 0;
      if (!equal && reasons[first + i] == 0) ++wrong;
    }
  }
  return wrong;
}

nlohmann::json run(const Tiles& tiles, std::uint32_t count, const Options& options) {
  const Placed placed = place(tiles, count);
  cuda::Jpeg2000BatchLimits limits{.tiles = count, .compressed_bytes = placed.bytes.size(), .format = tiles.format};
  limits.with_luminance = tiles.with_luminance;
  const std::size_t upload_bytes = cuda::Jpeg2000Batch::upload_bytes(limits);
  const bench::PinnedBytes upload = bench::allocate_pinned(upload_bytes);
  cuda::Jpeg2000Batch batch(limits, {upload.get(), upload_bytes});
  const std::size_t decoder_bytes = cuda::Jpeg2000BatchDecoder::device_bytes(limits);
  const bench::DeviceBytes decoder_memory = bench::allocate_device(decoder_bytes);
  cuda::Jpeg2000BatchDecoder decoder(limits, {decoder_memory.get(), decoder_bytes});
  const std::size_t luminance_bytes = std::size_t{tiles.width} * tiles.height;
  const std::size_t beside = tiles.tile_bytes() * count;
  const std::size_t plane_bytes = beside + (tiles.with_luminance ? luminance_bytes * count : 0);
  const bench::DeviceBytes plane = bench::allocate_device(plane_bytes);
  const bench::DeviceBytes compressed = bench::allocate_device(placed.bytes.size());
  const bench::DeviceBytes verdicts = bench::allocate_device(sizeof(std::uint32_t) * count);
  SLIDESTREAM_CUDA(cudaMemcpy(compressed.get(), placed.bytes.data(), placed.bytes.size(), cudaMemcpyHostToDevice));
  SLIDESTREAM_CUDA(cudaMemset(plane.get(), 0xA5, plane_bytes));
  SLIDESTREAM_CUDA(cudaDeviceSynchronize());  // the stream below doesn't wait for these
  const TileDemand demand{tiles.colour, tiles.width, tiles.height, tiles.width, tiles.height, tiles.format};
  const auto before = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto row_bytes = static_cast<std::uint32_t>(tiles.format.pixel_bytes() * tiles.width);
    const cuda::JpegPlacement placement{i * tiles.tile_bytes(),       row_bytes,  0, 0, tiles.width, tiles.height,
                                        beside + i * luminance_bytes, tiles.width};
    const cuda::Jpeg2000Reason reason =
        batch.add({placed.bytes.data() + placed.offsets[i], tiles.bytes[placed.chosen[i]].size()}, placed.offsets[i],
                  demand, placement);
    if (reason != cuda::Jpeg2000Reason::none) {
      throw SlideError(std::string("a tile isn't for the device: ") + describe(reason));
    }
  }
  const double host_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - before).count() / count;
  cudaStream_t stream = nullptr;
  cudaEvent_t events[2] = {};
  SLIDESTREAM_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (cudaEvent_t& event : events) SLIDESTREAM_CUDA(cudaEventCreate(&event));
  std::vector<double> times;
  for (int i = 0; i < options.repeat + 1; ++i) {  // the first warms up
    SLIDESTREAM_CUDA(cudaEventRecord(events[0], stream));
    decoder.enqueue(reinterpret_cast<std::uint8_t*>(plane.get()), reinterpret_cast<std::uint32_t*>(verdicts.get()),
                    batch, {compressed.get(), placed.bytes.size()}, stream);
    SLIDESTREAM_CUDA(cudaEventRecord(events[1], stream));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream));
    if (i > 0) times.push_back(bench::milliseconds(events[0], events[1]));
  }
  SLIDESTREAM_CUDA(cudaStreamDestroy(stream));
  for (cudaEvent_t event : events) SLIDESTREAM_CUDA(cudaEventDestroy(event));
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::vector<std::uint32_t> reasons(count);
  SLIDESTREAM_CUDA(cudaMemcpy(reasons.data(), verdicts.get(), sizeof(std::uint32_t) * count, cudaMemcpyDeviceToHost));
  const auto flagged =
      static_cast<std::size_t>(std::count_if(reasons.begin(), reasons.end(), [](std::uint32_t r) { return r != 0; }));
  const std::size_t wrong = count_wrong(tiles, placed, reasons, plane.get());
  const double pixels = static_cast<double>(count) * tiles.width * tiles.height;
  nlohmann::json row = {{"slide", tiles.name},
                        {"tile", {tiles.width, tiles.height}},
                        {"tiles", count},
                        {"mean_bytes", static_cast<double>(placed.bytes.size()) / count},
                        {"ms", median},
                        {"ms_min", times.front()},
                        {"ms_max", times.back()},
                        {"gpx_per_s", pixels / median / 1e6},
                        {"flagged", flagged},
                        {"wrong", wrong},
                        {"host_us_per_tile", host_us},
                        {"device_mb", decoder_bytes >> 20}};
  std::printf(
      "%-24s %6u tiles of %6.0f B: %8.3f ms (%.3f..%.3f) %6.1f Gpx/s, flagged %zu, wrong %zu, host %.2f us a tile\n",
      tiles.name.c_str(), count, static_cast<double>(placed.bytes.size()) / count, median, times.front(), times.back(),
      pixels / median / 1e6, flagged, wrong, host_us);
  std::fflush(stdout);
  return row;
}

Options parse(int argc, char** argv) {
  Options options;
  bench::parse_tile_options(argc, argv, options, [&](const std::string& argument, const bench::ArgumentValue& value) {
    if (argument == "--openjpeg") {
      options.openjpeg = true;
    } else if (argument == "--write-tiles") {
      options.tiles_file = value();
    } else if (argument == "--format") {
      const std::string wanted = value();
      options.formats = wanted == tissue ? std::vector{wanted} : bench::tile_formats(wanted);
    } else {
      return false;
    }
    return true;
  });
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    nlohmann::json rows = nlohmann::json::array();
    bool sound = true;
    for (const std::string& path : options.slides) {
      for (const std::string& format : options.formats) {
        const Tiles tiles = read_tiles(path, format);
        if (tiles.bytes.empty()) continue;
        if (!options.tiles_file.empty()) write_tiles(tiles, options.tiles_file);
        if (options.openjpeg) {
          rows.push_back(run_openjpeg(tiles));
          sound = sound && rows.back()["wrong"] == 0;
        }
        for (const std::uint32_t count : options.tiles) {
          if (batch_bytes(tiles, count) > most_batch_bytes) continue;
          rows.push_back(run(tiles, count, options));
          sound = sound && rows.back()["wrong"] == 0 && rows.back()["flagged"] == 0;
        }
      }
    }
    if (!options.json.empty()) std::ofstream(options.json) << rows.dump(1) << '\n';
    return sound ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "jpeg2000_gpu_bench: %s\n", error.what());
    return 2;
  }
}
