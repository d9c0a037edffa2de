// JPEG encoding on a GPU: `encode_gpu_bench SLIDE... [--format grey|rgb] [--tiles N,N,...] [--quality N,N,...]
// [--repeat N] [--json FILE] [--unchecked]`.
//
// The tiles of the slides' level 0, drawn at random, stand side by side in device memory, as an image of 65,664 pixels
// across and as many rows as N tiles make (0: 43,264 rows, so that the last column and row of tiles are padded). They
// go to compact compressed bytes in device memory, and every tile of the last run is compared with the host encoder's.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "codec/tile_encoder.hpp"
#include "cuda/encode/jpeg_encoder.hpp"
#include "cuda/pyramid/device_pyramid.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "tile_options.hpp"

namespace {

using namespace slidestream;
using runtime::cuda::DeviceMemory;

constexpr std::int64_t side = 256;
constexpr Size slide_size{65664, 43264};

struct Options : bench::TileOptions {
  Options() : TileOptions{{}, {0, 4096, 1024}, 9, {}} {}
  std::vector<std::uint32_t> qualities = {75};
  bool checked = true;
  std::vector<PixelFormat> formats = {luminance_format, rgb_format};
};

/// Tiles of 256 x 256 pixels.
using Pixels = std::vector<std::vector<std::byte>>;

/// Cuts the upper left corner of each slide's level 0, which has tiles of any size, into tiles.
Pixels read_tiles(const std::vector<std::string>& slides, const PixelFormat& format) {
  constexpr std::int64_t most = 4096;
  Pixels tiles;
  for (const std::string& path : slides) {
    const auto slide = Slide::open(path);
    const Level& level = slide->info().levels.at(0);
    const Size corner{std::min(most, level.width) / side * side, std::min(most, level.height) / side * side};
    const std::int64_t pitch = format.channels * corner.width;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(pitch * corner.height));
    const HostPixels view{pixels.data(), pitch, corner.width, corner.height, format};
    if (format == rgb_format) {
      read_rgb(*slide, 0, 0, 0, view);
    } else {
      read_luminance(*slide, 0, 0, 0, view);
    }
    for (std::int64_t y = 0; y < corner.height; y += side) {
      for (std::int64_t x = 0; x < corner.width; x += side) {
        std::vector<std::byte>& tile = tiles.emplace_back();
        for (std::int64_t row = y; row < y + side; ++row) {
          const auto* from = reinterpret_cast<const std::byte*>(pixels.data() + row * pitch + x * format.channels);
          tile.insert(tile.end(), from, from + side * format.channels);
        }
      }
    }
  }
  if (tiles.empty()) throw SlideError("no slide holds a tile of 256 x 256 pixels");
  return tiles;
}

/// An image of such tiles, in device memory.
class Image {
 public:
  Image(const Pixels& tiles, const PixelFormat& format, std::uint32_t count) : format_(format) {
    const std::int64_t across = (slide_size.width + side - 1) / side;
    size_ = slide_size;
    if (count > 0) size_.height = (count + across - 1) / across * side;
    const std::int64_t down = (size_.height + side - 1) / side;
    const auto row_bytes = static_cast<std::size_t>(side) * format.pixel_bytes();
    pitch_ = static_cast<std::size_t>(size_.width) * format.pixel_bytes();
    memory_ = DeviceMemory(pitch_ * static_cast<std::size_t>(size_.height));
    const DeviceMemory source(tiles.size() * tiles[0].size());
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      SLIDESTREAM_CUDA(cudaMemcpy(source.bytes().data() + i * tiles[0].size(), tiles[i].data(), tiles[i].size(),
                                  cudaMemcpyHostToDevice));
    }
    // Which tile stands where is left to chance: equal ones side by side would run in step.
    std::mt19937 random(1);
    for (std::int64_t y = 0; y < down; ++y) {
      for (std::int64_t x = 0; x < across && (count == 0 || positions_.size() < count); ++x) {
        const std::size_t tile = random() % tiles.size();
        const Size held{std::min(side, size_.width - x * side), std::min(side, size_.height - y * side)};
        SLIDESTREAM_CUDA(cudaMemcpy2DAsync(memory_.bytes().data() + static_cast<std::size_t>(y * side) * pitch_ +
                                               static_cast<std::size_t>(x) * row_bytes,
                                           pitch_, source.bytes().data() + tile * tiles[0].size(), row_bytes,
                                           static_cast<std::size_t>(held.width) * format.pixel_bytes(),
                                           static_cast<std::size_t>(held.height), cudaMemcpyDeviceToDevice));
        positions_.push_back({static_cast<std::uint32_t>(x * side), static_cast<std::uint32_t>(y * side)});
        chosen_.push_back({tile, held});
        pixels_ += static_cast<double>(held.width) * static_cast<double>(held.height);
      }
    }
    SLIDESTREAM_CUDA(cudaDeviceSynchronize());
  }

  struct Tile {
    std::size_t source;
    Size held;
  };

  ConstPixelView<MemorySpace::device> view() const {
    return {
        memory_.bytes().data(), static_cast<std::ptrdiff_t>(pitch_), {0, 0, size_.width, size_.height}, size_, format_};
  }
  const std::vector<cuda::JpegTilePosition>& positions() const { return positions_; }
  const std::vector<Tile>& tiles() const { return chosen_; }
  double pixels() const { return pixels_; }

 private:
  PixelFormat format_;
  Size size_;
  std::size_t pitch_ = 0;
  DeviceMemory memory_;
  std::vector<cuda::JpegTilePosition> positions_;
  std::vector<Tile> chosen_;
  double pixels_ = 0;
};

/// How many tiles differ from the host encoder's.
std::size_t count_wrong(const Pixels& tiles, const Image& image, const PixelFormat& format, int quality,
                        const std::vector<std::uint64_t>& offsets, const std::vector<std::byte>& found) {
  const auto encoder = make_tile_encoder(TileCompression::jpeg, format, quality, side);
  std::map<std::pair<std::size_t, std::pair<std::int64_t, std::int64_t>>, std::vector<std::byte>> expected;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < image.tiles().size(); ++i) {
    const Image::Tile& tile = image.tiles()[i];
    std::vector<std::byte>& bytes = expected[{tile.source, {tile.held.width, tile.held.height}}];
    if (bytes.empty()) {
      bytes = encoder->encode({tiles[tile.source].data(),
                               static_cast<std::ptrdiff_t>(static_cast<std::size_t>(side) * format.pixel_bytes()),
                               {0, 0, tile.held.width, tile.held.height},
                               {side, side},
                               format});
    }
    const bool equal = offsets[i + 1] - offsets[i] == bytes.size() &&
                       std::memcmp(found.data() + offsets[i], bytes.data(), bytes.size()) == 0;
    if (!equal) ++wrong;
  }
  return wrong;
}

nlohmann::json run(const Pixels& tiles, const Image& image, const PixelFormat& format, int quality,
                   const Options& options, bool whole) {
  const std::vector<cuda::JpegTilePosition>& positions = image.positions();
  const auto bytes = static_cast<std::uint64_t>(image.pixels()) * format.pixel_bytes();
  const cuda::JpegEncoderLimits limits{.tiles = static_cast<std::uint32_t>(positions.size()),
                                       .side = side,
                                       .format = format,
                                       .scratch_bytes = bytes / 2};
  const DeviceMemory memory(cuda::JpegEncoder::device_bytes(limits));
  cuda::JpegEncoder encoder(limits, quality, memory.bytes());
  const DeviceMemory output(bytes / 2);
  const DeviceMemory offset_memory((positions.size() + 2) * sizeof(std::uint64_t));
  auto* const words = reinterpret_cast<std::uint64_t*>(offset_memory.bytes().data());
  const cuda::JpegEncoderOutput out{
      output.bytes(), {words, positions.size() + 1}, reinterpret_cast<std::uint32_t*>(words + positions.size() + 1)};
  std::vector<cuda::JpegTilePosition> pinned = positions;
  const runtime::cuda::PinnedRange range(std::as_writable_bytes(std::span(pinned)));
  const runtime::cuda::Stream stream;
  const runtime::cuda::Event begin;
  const runtime::cuda::Event end;
  std::vector<double> times;
  for (int i = 0; i < options.repeat + 1; ++i) {
    SLIDESTREAM_CUDA(cudaEventRecord(begin.get(), stream.get()));
    encoder.enqueue(image.view(), pinned, out, stream.get());
    SLIDESTREAM_CUDA(cudaEventRecord(end.get(), stream.get()));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
    float elapsed = 0;
    SLIDESTREAM_CUDA(cudaEventElapsedTime(&elapsed, begin.get(), end.get()));
    if (i > 0) times.push_back(elapsed);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::vector<std::uint64_t> offsets(positions.size() + 2);
  SLIDESTREAM_CUDA(cudaMemcpy(offsets.data(), words, offset_memory.bytes().size(), cudaMemcpyDeviceToHost));
  const auto units = static_cast<std::uint32_t>(offsets.back());
  offsets.pop_back();
  std::size_t wrong = positions.size();
  if (cuda::fits(limits, offsets.back(), output.bytes().size(), units)) {
    std::vector<std::byte> found(offsets.back());
    SLIDESTREAM_CUDA(cudaMemcpy(found.data(), output.bytes().data(), found.size(), cudaMemcpyDeviceToHost));
    wrong = options.checked ? count_wrong(tiles, image, format, quality, offsets, found) : 0;
  }
  std::string name =
      std::string(format == rgb_format ? "rgb_" : "grey_") + (whole ? "whole" : std::to_string(positions.size()));
  if (quality != 75) name += "_q" + std::to_string(quality);
  const double rate = image.pixels() / median / 1e6;
  std::printf("%-18s %6zu tiles: %8.3f ms (%.3f..%.3f) %7.1f Gpx/s, %.4f bytes a pixel, wrong %zu\n", name.c_str(),
              positions.size(), median, times.front(), times.back(), rate,
              static_cast<double>(offsets.back()) / image.pixels(), wrong);
  std::fflush(stdout);
  return {{"name", name},
          {"value", rate},
          {"unit", "Gpx/s"},
          {"target", nullptr},
          {"wrong", wrong},
          {"note", std::to_string(median) + " ms, median of " + std::to_string(options.repeat) + ", least " +
                       std::to_string(times.front()) + ", most " + std::to_string(times.back())}};
}

/// Makes the image's smaller levels, in bands of eight rows of tiles.
nlohmann::json run_levels(const Image& image, const PixelFormat& format, const Options& options) {
  constexpr std::int64_t band_rows = 8 * side;
  const ConstPixelView<MemorySpace::device> view = image.view();
  const PyramidLayout layout(view.image, side, 0);
  std::vector<DeviceMemory> memories;
  std::vector<PixelView<MemorySpace::device>> levels;
  for (int level = 1; level < layout.levels(); ++level) {
    const Size size = layout.size(level);
    const std::int64_t pitch = size.width * format.channels;
    const DeviceMemory& memory = memories.emplace_back(static_cast<std::size_t>(pitch * size.height));
    levels.push_back({memory.bytes().data(), pitch, {0, 0, size.width, size.height}, size, format});
  }
  const DeviceMemory memory(cuda::DevicePyramid::device_bytes(layout, format, band_rows));
  const runtime::cuda::Stream stream;
  const runtime::cuda::Event begin;
  const runtime::cuda::Event end;
  std::vector<double> times;
  for (int i = 0; i < options.repeat + 1; ++i) {
    cuda::DevicePyramid pyramid(layout, format, band_rows, memory.bytes());
    SLIDESTREAM_CUDA(cudaEventRecord(begin.get(), stream.get()));
    for (std::int64_t y = 0; y < view.image.height; y += band_rows) {
      ConstPixelView<MemorySpace::device> band = view;
      band.data += y * view.pitch;
      band.rect = {0, y, view.image.width, std::min(band_rows, view.image.height - y)};
      pyramid.enqueue(band, levels, stream.get());
    }
    SLIDESTREAM_CUDA(cudaEventRecord(end.get(), stream.get()));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
    float elapsed = 0;
    SLIDESTREAM_CUDA(cudaEventElapsedTime(&elapsed, begin.get(), end.get()));
    if (i > 0) times.push_back(elapsed);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const std::string name = format == rgb_format ? "rgb_levels" : "grey_levels";
  std::printf("%-18s %6d levels: %8.3f ms (%.3f..%.3f) %7.1f Gpx/s\n", name.c_str(), layout.levels(), median,
              times.front(), times.back(), image.pixels() / median / 1e6);
  std::fflush(stdout);
  return {{"name", name},    {"value", image.pixels() / median / 1e6},
          {"unit", "Gpx/s"}, {"target", nullptr},
          {"wrong", 0},      {"note", std::to_string(median) + " ms, median of " + std::to_string(options.repeat)}};
}

Options parse(int argc, char** argv) {
  Options options;
  bench::parse_tile_options(argc, argv, options, [&](const std::string& argument, const bench::ArgumentValue& value) {
    if (argument == "--quality") {
      options.qualities = bench::numbers_in(value());
    } else if (argument == "--format") {
      const std::string wanted = value();
      if (wanted != "grey" && wanted != "rgb") throw ConfigError("--format is grey or rgb");
      options.formats = {wanted == "rgb" ? rgb_format : luminance_format};
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
    nlohmann::json figures = nlohmann::json::array();
    std::size_t wrong = 0;
    for (const PixelFormat& format : options.formats) {
      const Pixels tiles = read_tiles(options.slides, format);
      for (const std::uint32_t count : options.tiles) {
        const Image image(tiles, format, count);
        for (const std::uint32_t quality : options.qualities) {
          figures.push_back(run(tiles, image, format, static_cast<int>(quality), options, count == 0));
          wrong += figures.back()["wrong"].get<std::size_t>();
        }
        if (count == 0) figures.push_back(run_levels(image, format, options));
      }
    }
    figures.push_back(
        {{"name", "wrong"}, {"value", wrong}, {"unit", "tiles"}, {"target", 0}, {"direction", "at_most"}});
    if (!options.json.empty()) std::ofstream(options.json) << nlohmann::json{{"figures", figures}}.dump(1) << '\n';
    return wrong == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "encode_gpu_bench: %s\n", error.what());
    return 2;
  }
}
