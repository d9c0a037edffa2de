// JPEG decoding on a GPU: `jpeg_gpu_bench SLIDE... [--format luminance|rgb|both|srgb|srgb_table] [--tiles N,N,...]
// [--repeat N] [--json FILE] [--unchecked]`.
//
// The tiles of each slide's level 0, repeated to N tiles a batch (0: as many as make 2.84 Gpx), go from compressed
// bytes in device memory to luminance in a plane, to RGB, to both, and to RGB that is converted to sRGB by made
// profiles, one of a matrix and one of a table. Every tile of the last run is compared with the CPU's.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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

#include "colour/colour_conversion.hpp"
#include "cuda/colour/loaded_colours.hpp"
#include "cuda/jpeg/jpeg_batch_decoder.hpp"
#include "gpu_memory.hpp"
#include "runtime/cuda/check.hpp"
#include "slide/level_coding.hpp"
#include "tests/colour/made_profiles.hpp"
#include "tile_options.hpp"

namespace {

using namespace slidestream;
using bench::allocate_device;
using bench::allocate_pinned;
using bench::DeviceBytes;
using bench::milliseconds;
using bench::PinnedBytes;

constexpr double slide_pixels = 65664.0 * 43264.0;

struct Options : bench::TileOptions {
  Options() : TileOptions{{}, {0, 16384, 4096, 1024}, 7, {}} {}
  bool checked = true;
  std::int64_t lanes = -1;
  std::vector<std::string> formats = {"luminance", "rgb", "both", "srgb", "srgb_table"};
};

/// The distinct tiles of a slide: those inside the image in whole, with their pixels.
struct Tiles {
  std::string name;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  Colour colour = Colour::ycbcr;
  PixelFormat format;
  bool with_luminance = false;                         ///< beside RGB
  std::shared_ptr<const ColourConversion> conversion;  ///< of RGB; null: none
  std::vector<std::byte> tables;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<std::vector<std::uint8_t>> luminance;  ///< where it is made beside RGB
};

/// What a format's colours are converted by.
std::shared_ptr<const ColourConversion> conversion_for(const std::string& format) {
  if (!format.starts_with("srgb")) return nullptr;
  const std::string kind = format == "srgb" ? "gamma 2.2, version 2" : "mft2 to Lab";
  const std::vector<test::MadeProfile> profiles = test::made_profiles();
  return std::make_shared<const ColourConversion>(std::ranges::find(profiles, kind, &test::MadeProfile::name)->bytes);
}

Tiles read_tiles(const std::string& path, const std::string& wanted) {
  const PixelFormat format = wanted == "luminance" ? luminance_format : rgb_format;
  const auto slide = Slide::open(path);
  const Level& level = slide->info().levels.at(0);
  if (level.codec != Codec::jpeg) throw SlideError(path + ": not JPEG");
  Tiles tiles;
  tiles.name = std::filesystem::path(path).stem().string() + (format == rgb_format ? "_" + wanted : "");
  tiles.with_luminance = wanted == "both";
  tiles.conversion = conversion_for(wanted);
  tiles.format = format;
  tiles.width = static_cast<std::uint32_t>(level.tile_width);
  tiles.height = static_cast<std::uint32_t>(level.tile_height);
  tiles.colour = level.colour;
  tiles.tables = coding_of(*slide, 0).jpeg_tables;
  TileDecoder decoder;
  for (std::int64_t i = 0; i < level.columns * level.rows && tiles.bytes.size() < 50000; ++i) {
    const TileRange range = slide->tile(0, i);
    if (range.length == 0) continue;
    std::vector<std::byte> bytes(range.length);
    slide->read(range.offset, bytes);
    std::vector<std::uint8_t> pixels(format.pixel_bytes() * tiles.width * tiles.height);
    decoder.decode(*slide, 0, i, bytes, 0, 0,
                   {pixels.data(), format.channels * level.tile_width, level.tile_width, level.tile_height, format});
    if (tiles.conversion != nullptr) {
      tiles.conversion->apply(pixels.data(), std::int64_t{tiles.width} * tiles.height);
    }
    if (tiles.with_luminance) {
      std::vector<std::uint8_t>& beside = tiles.luminance.emplace_back(std::size_t{tiles.width} * tiles.height);
      decoder.decode(*slide, 0, i, bytes, 0, 0,
                     {beside.data(), level.tile_width, level.tile_width, level.tile_height, luminance_format});
    }
    tiles.bytes.push_back(std::move(bytes));
    tiles.pixels.push_back(std::move(pixels));
  }
  return tiles;
}

/// Tiles side by side in rows of a plane, and what they must be.
struct PlaceOfTiles {
  const std::byte* plane;  ///< on the device
  std::uint32_t pitch;
  std::uint32_t row_bytes;  ///< of a tile
  std::uint32_t across;
  const std::vector<std::vector<std::uint8_t>>& expected;
};

/// Notes in `wrong` which tiles aren't what they must be.
void compare(const PlaceOfTiles& place, std::uint32_t height, const std::vector<std::uint32_t>& chosen,
             std::vector<char>& wrong) {
  std::vector<std::uint8_t> band(std::size_t{place.pitch} * height);
  for (std::size_t first = 0; first < chosen.size(); first += place.across) {
    SLIDESTREAM_CUDA(
        cudaMemcpy(band.data(), place.plane + first / place.across * band.size(), band.size(), cudaMemcpyDeviceToHost));
    for (std::size_t i = first; i < std::min(chosen.size(), first + place.across); ++i) {
      const std::uint8_t* const expected = place.expected[chosen[i]].data();
      for (std::uint32_t y = 0; y < height && wrong[i] == 0; ++y) {
        wrong[i] = std::memcmp(band.data() + std::size_t{y} * place.pitch + (i - first) * place.row_bytes,
                               expected + std::size_t{y} * place.row_bytes, place.row_bytes) != 0;
      }
    }
  }
}

nlohmann::json run(const Tiles& tiles, std::uint32_t count, const Options& options) {
  const std::size_t distinct = tiles.bytes.size();
  // As they lie in a slide of 65664 pixels across: rows of tiles, a pitch that is a multiple of 64. Which of the
  // distinct tiles stands where is left to chance: equal ones side by side would run in step.
  const auto across = std::min<std::uint32_t>(count, 65664 / tiles.width);
  std::mt19937 random(1);
  std::vector<std::uint32_t> chosen(count);
  for (std::uint32_t i = 0; i < count; ++i)
    chosen[i] = count <= distinct ? i : static_cast<std::uint32_t>(random() % distinct);
  const auto pixel_bytes = static_cast<std::uint32_t>(tiles.format.pixel_bytes());
  const std::uint32_t row_bytes = pixel_bytes * tiles.width;
  const std::uint32_t pitch = (across * row_bytes + 128 + 63) / 64 * 64;
  const std::size_t rows = (count + across - 1) / across;
  const std::size_t plane_bytes = std::size_t{pitch} * tiles.height * rows;
  // Luminance lies behind RGB.
  const std::uint32_t luminance_pitch = tiles.with_luminance ? pitch / 3 / 64 * 64 + 64 : 0;
  std::vector<std::size_t> offsets;
  std::size_t compressed_bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    offsets.push_back(compressed_bytes);
    compressed_bytes += tiles.bytes[chosen[i]].size();
  }
  const cuda::JpegLevelTables tables(tiles.tables);
  cuda::JpegBatchLimits limits{.tiles = count, .compressed_bytes = compressed_bytes, .format = tiles.format};
  limits.with_luminance = tiles.with_luminance;
  for (std::uint32_t i = 0; tiles.format == rgb_format && i < count; ++i) {
    cuda::JpegHeader header;
    if (parse_jpeg_header(tiles.bytes[chosen[i]], tables.references, header) == cuda::JpegReason::none)
      limits.component_bytes += cuda::component_bytes(header);
  }
  const std::size_t upload_bytes = cuda::JpegBatch::upload_bytes(limits);
  const PinnedBytes upload = allocate_pinned(upload_bytes);
  cuda::JpegBatch batch(limits, {upload.get(), upload_bytes});
  const std::size_t decoder_bytes = cuda::JpegBatchDecoder::device_bytes(limits);
  const DeviceBytes decoder_memory = allocate_device(decoder_bytes);
  cuda::JpegBatchDecoder decoder(limits, {decoder_memory.get(), decoder_bytes});
  const DeviceBytes plane = allocate_device(plane_bytes + std::size_t{luminance_pitch} * tiles.height * rows);
  const std::size_t buffer_bytes = (compressed_bytes + 15) / 16 * 16;
  const DeviceBytes compressed = allocate_device(buffer_bytes);
  const DeviceBytes verdicts = allocate_device(4 * std::size_t{count});
  std::vector<std::byte> host(buffer_bytes);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::vector<std::byte>& bytes = tiles.bytes[chosen[i]];
    std::memcpy(host.data() + offsets[i], bytes.data(), bytes.size());
  }
  SLIDESTREAM_CUDA(cudaMemcpy(compressed.get(), host.data(), buffer_bytes, cudaMemcpyHostToDevice));
  SLIDESTREAM_CUDA(cudaMemset(plane.get(), 0xA5, plane_bytes));
  SLIDESTREAM_CUDA(cudaDeviceSynchronize());  // the stream below doesn't wait for these

  const TileDemand demand{tiles.colour, tiles.width, tiles.height, tiles.width, tiles.height, tiles.format};
  double host_add = 0;
  double host_finish = 0;
  for (int round = 0; round < 2; ++round) {  // the second is warm
    const auto before = std::chrono::steady_clock::now();
    batch.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      const cuda::JpegPlacement placement{std::uint64_t{i / across} * tiles.height * pitch + i % across * row_bytes,
                                          pitch,
                                          0,
                                          0,
                                          tiles.width,
                                          tiles.height,
                                          plane_bytes + std::uint64_t{i / across} * tiles.height * luminance_pitch +
                                              std::uint64_t{i % across} * tiles.width,
                                          luminance_pitch};
      const cuda::JpegReason reason =
          batch.add({host.data() + offsets[i], tiles.bytes[chosen[i]].size()}, offsets[i], tables, demand, placement);
      if (reason != cuda::JpegReason::none)
        throw SlideError(std::string("a tile isn't for the device: ") + describe(reason));
    }
    const auto added = std::chrono::steady_clock::now();
    batch.finish(options.lanes < 0 ? decoder.lanes() : static_cast<std::uint32_t>(options.lanes));
    host_add = std::chrono::duration<double, std::micro>(added - before).count() / count;
    host_finish = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - added).count();
  }
  const std::size_t colour_bytes = tiles.conversion != nullptr ? cuda::ConversionMemory::device_bytes : 0;
  const DeviceBytes colour_memory = allocate_device(colour_bytes + 1);
  const PinnedBytes colour_upload = allocate_pinned(cuda::ConversionMemory::pinned_bytes);
  cuda::DeviceColours colours;
  cudaStream_t stream = nullptr;
  cudaEvent_t events[2] = {};
  SLIDESTREAM_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (cudaEvent_t& event : events) SLIDESTREAM_CUDA(cudaEventCreate(&event));
  if (tiles.conversion != nullptr) {
    cuda::LoadedColours loaded({colour_memory.get(), colour_bytes},
                               {colour_upload.get(), cuda::ConversionMemory::pinned_bytes});
    colours = loaded.load(tiles.conversion, false, stream);
  }
  std::vector<double> times;
  for (int i = 0; i < options.repeat + 1; ++i) {
    SLIDESTREAM_CUDA(cudaEventRecord(events[0], stream));
    decoder.enqueue(reinterpret_cast<std::uint8_t*>(plane.get()), reinterpret_cast<std::uint32_t*>(verdicts.get()),
                    batch, {compressed.get(), buffer_bytes}, stream, colours);
    SLIDESTREAM_CUDA(cudaEventRecord(events[1], stream));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream));
    if (i > 0) times.push_back(milliseconds(events[0], events[1]));
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::vector<std::uint32_t> reasons(count);
  SLIDESTREAM_CUDA(cudaMemcpy(reasons.data(), verdicts.get(), 4 * std::size_t{count}, cudaMemcpyDeviceToHost));
  const auto flagged =
      static_cast<std::size_t>(std::count_if(reasons.begin(), reasons.end(), [](std::uint32_t r) { return r != 0; }));
  std::vector<char> is_wrong(count, 0);
  if (options.checked) {
    compare({plane.get(), pitch, row_bytes, across, tiles.pixels}, tiles.height, chosen, is_wrong);
    if (tiles.with_luminance) {
      compare({plane.get() + plane_bytes, luminance_pitch, tiles.width, across, tiles.luminance}, tiles.height, chosen,
              is_wrong);
    }
  }
  const auto wrong = static_cast<std::size_t>(std::ranges::count(is_wrong, 1));
  const double pixels = static_cast<double>(count) * tiles.width * tiles.height;
  SLIDESTREAM_CUDA(cudaStreamDestroy(stream));
  for (cudaEvent_t event : events) SLIDESTREAM_CUDA(cudaEventDestroy(event));
  nlohmann::json row = {{"slide", tiles.name},
                        {"tile", {tiles.width, tiles.height}},
                        {"tiles", count},
                        {"mean_bytes", static_cast<double>(compressed_bytes) / count},
                        {"segments", batch.segments()},
                        {"ms", median},
                        {"ms_min", times.front()},
                        {"ms_max", times.back()},
                        {"gpx_per_s", pixels / median / 1e6},
                        {"flagged", flagged},
                        {"wrong", wrong},
                        {"host_us_per_tile", host_add},
                        {"host_finish_ms", host_finish},
                        {"device_mb", decoder_bytes >> 20}};
  std::printf(
      "%-24s %4ux%-4u %6u tiles of %6.0f B, %7u segments: %7.3f ms (%.3f..%.3f) %7.1f Gpx/s, flagged %zu, wrong %zu, "
      "host %.2f us a tile + %.2f ms\n",
      tiles.name.c_str(), tiles.width, tiles.height, count, static_cast<double>(compressed_bytes) / count,
      batch.segments(), median, times.front(), times.back(), pixels / median / 1e6, flagged, wrong, host_add,
      host_finish);
  std::fflush(stdout);
  return row;
}

Options parse(int argc, char** argv) {
  Options options;
  bench::parse_tile_options(argc, argv, options, [&](const std::string& argument, const bench::ArgumentValue& value) {
    if (argument == "--lanes") {
      options.lanes = std::atoll(value().c_str());
    } else if (argument == "--format") {
      const std::string format = value();
      if (std::ranges::count(options.formats, format) == 0) {
        throw ConfigError("--format is luminance, rgb, both, srgb or srgb_table");
      }
      options.formats = {format};
    } else if (argument == "--unchecked") {
      options.checked = false;
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
        for (const std::uint32_t wanted : options.tiles) {
          const auto whole = static_cast<std::uint32_t>(slide_pixels / tiles.width / tiles.height);
          const std::uint32_t count = wanted == 0 ? whole : wanted;
          if (wanted > whole) continue;
          rows.push_back(run(tiles, count, options));
          sound = sound && rows.back()["wrong"] == 0 && rows.back()["flagged"] == 0;
        }
      }
    }
    if (!options.json.empty()) std::ofstream(options.json) << rows.dump(1) << '\n';
    return sound ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "jpeg_gpu_bench: %s\n", error.what());
    return 2;
  }
}
