// The kernels that convert colours, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "colour/made_profiles.hpp"
#include "cuda/colour_cases.hpp"
#include "cuda/converted_tiles.hpp"

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/colour/every_colour.cuh"
#include "cuda/tiles/place_converted.cuh"
#pragma GCC diagnostic pop

using namespace slidestream;
using namespace slidestream::cuda;
using namespace slidestream::test;

namespace {

struct Planes {
  std::vector<std::uint8_t> rgb;
  std::vector<std::uint8_t> luminance;
};

template <ColoursBy by>
Planes placed(const ConvertedTiles& scene, const DeviceColours& colours, bool with_rgb, bool with_luminance) {
  Planes made = {std::vector<std::uint8_t>(scene.rgb.size(), 7), std::vector<std::uint8_t>(scene.luminance.size(), 7)};
  ConvertedTask task = {};
  task.planes = {with_rgb ? made.rgb.data() : nullptr, with_luminance ? made.luminance.data() : nullptr,
                 3 * ConvertedTiles::plane_width, ConvertedTiles::plane_width};
  task.bytes = reinterpret_cast<const std::uint8_t*>(scene.bytes.data());
  task.tiles = scene.tiles.data();
  task.count = static_cast<std::uint32_t>(scene.tiles.size());
  task.layout = scene.layout();
  task.colours = colours;
  for (unsigned block = 0; block < ConvertedShape::blocks_per_tile; ++block) {
    emulator::run_block(block, ConvertedShape::blocks_per_tile, ConvertedShape::threads,
                        [&task] { place_converted<by>(task); });
  }
  return made;
}

template <ColoursBy by>
void check_placed(const ConvertedTiles& scene, const DeviceColours& colours) {
  CHECK(colours_by(colours) == by);
  const Planes both = placed<by>(scene, colours, true, true);
  CHECK(both.rgb == scene.rgb);
  CHECK(both.luminance == scene.luminance);
  CHECK(placed<by>(scene, colours, true, false).rgb == scene.rgb);
  CHECK(placed<by>(scene, colours, false, true).luminance == scene.luminance);
}

}  // namespace

TEST_CASE("what colours become, emulated, is the CPU's") {
  std::mt19937 random(2);
  std::vector<std::uint32_t> made(DeviceColours::every_count);
  for (const MadeProfile& profile : made_profiles()) {
    CAPTURE(profile.name);
    const ColourConversion conversion(profile.bytes);
    const HostColours host(conversion);
    for (int turn = 0; turn < 20; ++turn) {
      const unsigned block = turn == 0   ? 0
                             : turn == 1 ? EveryColourShape::blocks - 1
                                         : random() % EveryColourShape::blocks;
      emulator::run_block(block, EveryColourShape::blocks, EveryColourShape::threads,
                          [&] { make_every(host.colours().program, made.data()); });
      bool same = true;
      for (unsigned number = 256 * block; number < 256 * (block + 1); ++number) {
        const Rgb from = colour_at(number);
        std::uint8_t rgb[] = {from.red, from.green, from.blue};
        convert_colour(conversion.steps(), rgb);
        same = same && made[number] == packed({rgb[0], rgb[1], rgb[2]});
      }
      CHECK(same);
    }
  }
}

TEST_CASE("tiles without a codec are converted and placed, emulated, as the CPU does it, at every alignment") {
  std::mt19937 random(5);
  const std::vector<MadeProfile> profiles = made_profiles();
  for (const std::string name : {"gamma 1.8, version 4", "mAB to Lab"}) {
    CAPTURE(name);
    const ColourConversion conversion(std::ranges::find(profiles, name, &MadeProfile::name)->bytes);
    const std::vector<std::uint32_t> every = every_colour(conversion);
    for (ConvertedTiles& scene : converted_tiles()) {
      CAPTURE(static_cast<int>(scene.colour));
      CAPTURE(scene.samples);
      scene.make(conversion, random);
      HostColours host(conversion);
      if (host.colours().is_matrix) check_placed<ColoursBy::matrix>(scene, host.colours());
      host.use_every(every);
      check_placed<ColoursBy::every>(scene, host.colours());
    }
  }
}
