#include "cuda/tiles/place.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

#include "cuda/device_copies.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "slide/pixels.hpp"
#include "support/gpu.hpp"

using namespace slidestream;
using runtime::cuda::DeviceMemory;
using test::to_device;

TEST_CASE("tiles without a codec are cropped and placed as the CPU does it, at every alignment") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(5);
  const auto in = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  constexpr int plane_columns = 512;
  constexpr int plane_height = 300;
  struct Kind {
    Colour colour;
    int samples;
    PixelFormat format = luminance_format;
  };
  for (const Kind kind :
       {Kind{Colour::grey, 1}, Kind{Colour::grey, 2}, Kind{Colour::grey_inverted, 1}, Kind{Colour::rgb, 3},
        Kind{Colour::rgb, 4}, Kind{Colour::ycbcr, 3}, Kind{Colour::grey, 1, rgb_format},
        Kind{Colour::grey_inverted, 2, rgb_format}, Kind{Colour::rgb, 3, rgb_format}, Kind{Colour::rgb, 4, rgb_format},
        Kind{Colour::ycbcr, 3, rgb_format}, Kind{Colour::ycbcr, 1, rgb_format}}) {
    const int channels = kind.format.channels;
    const int plane_width = plane_columns * channels;  // bytes
    const int tile_width = 70;
    const int tile_height = 50;
    const std::size_t tile_bytes = static_cast<std::size_t>(tile_width * tile_height * kind.samples);
    std::vector<std::byte> bytes;
    std::vector<cuda::PlacedTile> tiles;
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(plane_width * plane_height), 7);
    for (int row = 0; row < 5; ++row) {
      for (int column = 0; column < 7; ++column) {
        bytes.resize(bytes.size() + static_cast<std::size_t>(in(0, 5)));  // tiles lie anywhere in a file
        const std::size_t start = bytes.size();
        for (std::size_t i = 0; i < tile_bytes; ++i) bytes.push_back(static_cast<std::byte>(in(0, 255)));
        const int from_x = in(0, 9);
        const int from_y = in(0, 9);
        cuda::PlacedTile tile;
        tile.width = static_cast<std::uint32_t>(in(1, tile_width - from_x));
        tile.height = static_cast<std::uint32_t>(in(1, tile_height - from_y));
        const bool white = in(0, 5) == 0;
        const std::size_t source = start + static_cast<std::size_t>((from_y * tile_width + from_x) * kind.samples);
        if (!white) tile.source = source;
        // The other plane's offset doesn't count.
        std::uint64_t& destination = channels == 3 ? tile.rgb_destination : tile.destination;
        destination =
            static_cast<std::uint64_t>((row * 55 + in(0, 5)) * plane_width + channels * (column * 73 + in(0, 3)));
        for (std::uint32_t y = 0; y < tile.height; ++y) {
          std::uint8_t* to = expected.data() + destination + y * static_cast<std::size_t>(plane_width);
          const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data()) + source +
                             y * static_cast<std::size_t>(tile_width * kind.samples);
          if (white) {
            std::memset(to, 255, tile.width * static_cast<std::size_t>(channels));
          } else {
            interleaved_to_pixels(to, from, tile.width, kind.samples, kind.colour, kind.format);
          }
        }
        tiles.push_back(tile);
      }
    }
    const DeviceMemory device_bytes = to_device(bytes);
    const DeviceMemory device_tiles = to_device(tiles);
    const DeviceMemory plane = to_device(std::vector<std::uint8_t>(expected.size(), 7));
    const runtime::cuda::Stream stream;
    (channels == 3 ? cuda::place_rgb_tiles : cuda::place_tiles)(
        reinterpret_cast<std::uint8_t*>(plane.bytes().data()), plane_width, device_bytes.bytes().data(),
        reinterpret_cast<const cuda::PlacedTile*>(device_tiles.bytes().data()), tiles.size(),
        {static_cast<std::uint32_t>(tile_width * kind.samples), static_cast<std::uint32_t>(kind.samples), kind.colour},
        stream.get());
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
    std::vector<std::uint8_t> found(expected.size());
    SLIDESTREAM_CUDA(cudaMemcpy(found.data(), plane.bytes().data(), found.size(), cudaMemcpyDeviceToHost));
    CAPTURE(name(kind.colour));
    CAPTURE(kind.samples);
    CAPTURE(channels);
    CHECK(found == expected);
  }
}
