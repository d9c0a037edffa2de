// Colours that a GPU converts, against the CPU's: all of them, for profiles of every kind.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "colour/made_profiles.hpp"
#include "cuda/colour/loaded_colours.hpp"
#include "cuda/colour_cases.hpp"
#include "cuda/converted_tiles.hpp"
#include "cuda/device_copies.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"
#include "support/gpu.hpp"

using namespace slidestream;
using namespace slidestream::test;
using runtime::cuda::DeviceMemory;

namespace {

template <class T>
std::vector<T> to_host(const void* device, std::size_t count, cudaStream_t stream) {
  std::vector<T> values(count);
  SLIDESTREAM_CUDA(cudaStreamSynchronize(stream));
  SLIDESTREAM_CUDA(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

/// A slot's conversion, and the stream that it is used on.
struct Slot {
  DeviceMemory device{cuda::ConversionMemory::device_bytes};
  runtime::HostMemory host{cuda::ConversionMemory::pinned_bytes};
  runtime::cuda::PinnedRange pinned{host.bytes()};
  runtime::cuda::Stream stream;
  cuda::LoadedColours colours{device.bytes(), host.bytes()};
};

/// All colours, by `number_of`, as tiles of 256 x 256 pixels, one behind the other.
std::vector<std::uint8_t> all_pixels() {
  std::vector<std::uint8_t> pixels(3 * cuda::DeviceColours::every_count);
  for (std::uint32_t i = 0; i < cuda::DeviceColours::every_count; ++i) {
    const Rgb colour = cuda::colour_at(i);
    pixels[3 * std::size_t{i}] = colour.red;
    pixels[3 * std::size_t{i} + 1] = colour.green;
    pixels[3 * std::size_t{i} + 2] = colour.blue;
  }
  return pixels;
}

std::vector<cuda::PlacedTile> tiles_of_all() {
  std::vector<cuda::PlacedTile> tiles(256);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    tiles[i].source = tiles[i].rgb_destination = i * 3 * 65536;
    tiles[i].destination = i * 65536;
    tiles[i].width = tiles[i].height = 256;
  }
  return tiles;
}

}  // namespace

TEST_CASE("a GPU converts all colours as the CPU does, by profiles of every kind") {
  if (gpus_or_skip() == 0) return;
  Slot slot;
  const cudaStream_t stream = slot.stream.get();
  const std::vector<std::uint8_t> pixels = all_pixels();
  const DeviceMemory from = to_device(pixels);
  const DeviceMemory tiles = to_device(tiles_of_all());
  const DeviceMemory rgb(pixels.size());
  const DeviceMemory luminance(pixels.size() / 3);
  for (const MadeProfile& profile : made_profiles()) {
    CAPTURE(profile.name);
    const auto conversion = std::make_shared<const ColourConversion>(profile.bytes);
    const std::vector<std::uint32_t> expected = every_colour(*conversion);
    // As a run for JPEG has it, then as one for JPEG 2000.
    for (const bool every : {false, true}) {
      CAPTURE(every);
      const cuda::DeviceColours colours = slot.colours.load(conversion, every, stream);
      CHECK(colours.is_matrix != profile.has_table);
      CHECK((colours.every != nullptr) == (every || profile.has_table));
      if (colours.every != nullptr) CHECK(to_host<std::uint32_t>(colours.every, expected.size(), stream) == expected);
      const cuda::ConvertedPlanes planes = {reinterpret_cast<std::uint8_t*>(rgb.bytes().data()),
                                            reinterpret_cast<std::uint8_t*>(luminance.bytes().data()), 3 * 256, 256};
      cuda::place_converted_tiles(planes, from.bytes().data(),
                                  reinterpret_cast<const cuda::PlacedTile*>(tiles.bytes().data()), 256,
                                  {3 * 256, 3, Colour::rgb}, colours, stream);
      const auto found = to_host<std::uint8_t>(rgb.bytes().data(), pixels.size(), stream);
      const auto grey = to_host<std::uint8_t>(luminance.bytes().data(), pixels.size() / 3, stream);
      std::size_t differ = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::uint32_t packed = found[3 * i] | found[3 * i + 1] << 8 | found[3 * i + 2] << 16;
        differ += packed != expected[i] ? 1 : 0;
        differ += grey[i] != slidestream::luminance(found[3 * i], found[3 * i + 1], found[3 * i + 2]) ? 1 : 0;
      }
      CHECK(differ == 0);
    }
    // An equal profile of another slide stays; without one nothing is converted.
    const auto same = std::make_shared<const ColourConversion>(profile.bytes);
    CHECK(slot.colours.load(same, true, stream).every != nullptr);
    CHECK(slot.colours.load(nullptr, true, stream).program == nullptr);
  }
}

TEST_CASE("a GPU converts tiles without a codec as the CPU does, at every alignment") {
  if (gpus_or_skip() == 0) return;
  Slot slot;
  const cudaStream_t stream = slot.stream.get();
  std::mt19937 random(5);
  for (const MadeProfile& profile : made_profiles()) {
    CAPTURE(profile.name);
    const auto conversion = std::make_shared<const ColourConversion>(profile.bytes);
    for (ConvertedTiles& scene : converted_tiles()) {
      CAPTURE(name(scene.colour));
      CAPTURE(scene.samples);
      scene.make(*conversion, random);
      const DeviceMemory bytes = to_device(scene.bytes);
      const DeviceMemory tiles = to_device(scene.tiles);
      for (const bool with_rgb : {true, false}) {
        for (const bool with_luminance : {true, false}) {
          const DeviceMemory rgb = to_device(std::vector<std::uint8_t>(scene.rgb.size(), 7));
          const DeviceMemory grey = to_device(std::vector<std::uint8_t>(scene.luminance.size(), 7));
          const cuda::ConvertedPlanes planes = {
              with_rgb ? reinterpret_cast<std::uint8_t*>(rgb.bytes().data()) : nullptr,
              with_luminance ? reinterpret_cast<std::uint8_t*>(grey.bytes().data()) : nullptr,
              3 * ConvertedTiles::plane_width, ConvertedTiles::plane_width};
          cuda::place_converted_tiles(
              planes, bytes.bytes().data(), reinterpret_cast<const cuda::PlacedTile*>(tiles.bytes().data()),
              scene.tiles.size(), scene.layout(), slot.colours.load(conversion, false, stream), stream);
          const auto found = to_host<std::uint8_t>(rgb.bytes().data(), scene.rgb.size(), stream);
          const auto found_grey = to_host<std::uint8_t>(grey.bytes().data(), scene.luminance.size(), stream);
          CHECK(found == (with_rgb ? scene.rgb : std::vector<std::uint8_t>(scene.rgb.size(), 7)));
          CHECK(found_grey ==
                (with_luminance ? scene.luminance : std::vector<std::uint8_t>(scene.luminance.size(), 7)));
        }
      }
    }
  }
}
