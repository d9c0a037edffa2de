// Milliseconds a slide for converting colours to sRGB on the current GPU, without decoding:
//   colour_gpu_bench [--json FILE] [--width N] [--height N] [--repeats N] [--only NAME]
// From RGB in device memory to RGB there, all of a slide a launch: by curves and a matrix, and by what every colour
// becomes, of a profile with a table; and what it takes to make that, once a profile. Figures are medians.

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "colour/colour_conversion.hpp"
#include "cuda/colour/every_colour.hpp"
#include "cuda/colour/loaded_colours.hpp"
#include "cuda/tiles/place_converted.hpp"
#include "gpu_steps.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/host_memory.hpp"
#include "tests/colour/made_profiles.hpp"

namespace {

using namespace slidestream;
using namespace slidestream::bench;
using runtime::cuda::DeviceMemory;

constexpr std::int64_t tile_side = 256;

/// A slide's tiles without a codec, one behind the other, and their places in a plane.
std::vector<cuda::PlacedTile> tiles_of(std::int64_t width, std::int64_t height, std::int64_t pitch) {
  std::vector<cuda::PlacedTile> tiles;
  for (std::int64_t y = 0; y + tile_side <= height; y += tile_side) {
    for (std::int64_t x = 0; x + tile_side <= width; x += tile_side) {
      cuda::PlacedTile tile;
      tile.source = 3 * tile_side * tile_side * tiles.size();
      tile.rgb_destination = static_cast<std::uint64_t>(y * pitch + 3 * x);
      tile.width = tile.height = static_cast<std::uint32_t>(tile_side);
      tiles.push_back(tile);
    }
  }
  return tiles;
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : repeats_(options.repeats),
        pitch_((3 * options.width + 63) / 64 * 64),
        tiles_(tiles_of(options.width, options.height, pitch_)),
        in_(3 * tile_side * tile_side * tiles_.size()),
        out_(static_cast<std::size_t>(pitch_ * options.height)),
        placed_(tiles_.size() * sizeof(cuda::PlacedTile)),
        host_(cuda::ConversionMemory::pinned_bytes),
        pinned_(host_.bytes()),
        device_(cuda::ConversionMemory::device_bytes),
        colours_(device_.bytes(), host_.bytes()) {
    fill_with_tissue(in_.bytes().data(), 3 * tile_side, 3 * tile_side, tile_side * std::ssize(tiles_));
    runtime::cuda::copy_to_device(placed_.bytes().data(), tiles_.data(), placed_.bytes().size());
  }

  /// \param kind  the name of a made profile
  Figure convert(const std::string& name, const std::string& kind) {
    const cuda::DeviceColours colours = load(kind);
    const cuda::ConvertedPlanes planes = {at<std::uint8_t>(out_), nullptr, pitch_, 0};
    Figure figure = measure(name, repeats_, stream_.get(), [&] {
      cuda::place_converted_tiles(planes, in_.bytes().data(), at<cuda::PlacedTile>(placed_), tiles_.size(),
                                  {3 * tile_side, 3, Colour::rgb}, colours, stream_.get());
    });
    const double pixels = static_cast<double>(tiles_.size()) * tile_side * tile_side;
    char rate[32];
    std::snprintf(rate, sizeof(rate), ", %.0f Gpx/s", pixels / figure.median * 1e-6);
    figure.note = rate;
    return figure;
  }

  Figure make(const std::string& name, const std::string& kind) {
    const cuda::DeviceColours colours = load(kind);
    const DeviceMemory every(cuda::DeviceColours::every_count * sizeof(std::uint32_t));
    return measure(name, repeats_, stream_.get(),
                   [&] { cuda::make_every_colour(colours.program, at<std::uint32_t>(every), stream_.get()); });
  }

 private:
  cuda::DeviceColours load(const std::string& kind) {
    for (const test::MadeProfile& profile : test::made_profiles()) {
      if (profile.name != kind) continue;
      SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
      return colours_.load(std::make_shared<const ColourConversion>(profile.bytes), false, stream_.get());
    }
    throw std::invalid_argument("no made profile is called " + kind);
  }

  int repeats_;
  std::int64_t pitch_;
  std::vector<cuda::PlacedTile> tiles_;
  DeviceMemory in_;
  DeviceMemory out_;
  DeviceMemory placed_;
  runtime::HostMemory host_;
  runtime::cuda::PinnedRange pinned_;
  DeviceMemory device_;
  cuda::LoadedColours colours_;
  runtime::cuda::Stream stream_;
};

Figures run(const Options& options) {
  Bench bench(options);
  Figures figures(options);
  // 350 Gpx/s.
  if (figures.wanted("matrix_ms")) figures.add(bench.convert("matrix_ms", "gamma 2.2, version 2"), 8.12);
  if (figures.wanted("table_ms")) figures.add(bench.convert("table_ms", "mft2 to Lab"), std::nullopt);
  if (figures.wanted("every_colour_ms")) figures.add(bench.make("every_colour_ms", "mAB to Lab"), std::nullopt);
  return figures;
}

}  // namespace

int main(int argc, char** argv) { return bench::measure_steps(argc, argv, run); }
