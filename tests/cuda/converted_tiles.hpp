#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "codec/luminance.hpp"
#include "colour/colour_conversion.hpp"
#include "cuda/tiles/place_converted.hpp"
#include "slide/pixels.hpp"

namespace slidestream::test {

/// Tiles without a codec at any address, and what becomes of them.
struct ConvertedTiles {
  Colour colour = Colour::rgb;
  int samples = 3;
  bool in_words = false;  ///< sources and destinations lie at multiples of 4 bytes

  static constexpr std::int64_t plane_width = 512;
  static constexpr std::int64_t plane_height = 300;
  static constexpr int tile_width = 72;
  static constexpr int tile_height = 50;

  std::vector<std::byte> bytes;
  std::vector<cuda::PlacedTile> tiles;
  std::vector<std::uint8_t> rgb;        ///< expected
  std::vector<std::uint8_t> luminance;  ///< expected

  cuda::SampleLayout layout() const {
    return {static_cast<std::uint32_t>(tile_width * samples), static_cast<std::uint32_t>(samples), colour};
  }

  void make(const ColourConversion& conversion, std::mt19937& random) {
    const auto in = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    rgb.assign(static_cast<std::size_t>(3 * plane_width * plane_height), 7);
    luminance.assign(static_cast<std::size_t>(plane_width * plane_height), 7);
    for (int row = 0; row < 5; ++row) {
      for (int column = 0; column < 6; ++column) {
        bytes.resize(bytes.size() + static_cast<std::size_t>(in_words ? 4 : in(0, 5)));
        const std::size_t start = bytes.size();
        for (int i = 0; i < tile_width * tile_height * samples; ++i)
          bytes.push_back(static_cast<std::byte>(in(0, 255)));
        const int from_x = in_words ? 4 * in(0, 2) : in(0, 9);
        const int from_y = in(0, 9);
        cuda::PlacedTile tile;
        tile.width = static_cast<std::uint32_t>(in(1, tile_width - from_x));
        tile.height = static_cast<std::uint32_t>(in(1, tile_height - from_y));
        const std::size_t source = start + static_cast<std::size_t>((from_y * tile_width + from_x) * samples);
        if (in(0, 5) > 0) tile.source = source;
        const std::int64_t at =
            (row * 55 + in(0, 5)) * plane_width + 76 * column + (in_words ? 4 * in(0, 1) : in(0, 3));
        tile.destination = static_cast<std::uint64_t>(at);
        tile.rgb_destination = static_cast<std::uint64_t>(3 * at);
        expect(tile, conversion);
        tiles.push_back(tile);
      }
    }
  }

 private:
  void expect(const cuda::PlacedTile& tile, const ColourConversion& conversion) {
    for (std::uint32_t y = 0; y < tile.height; ++y) {
      std::uint8_t* const to = rgb.data() + tile.rgb_destination + static_cast<std::size_t>(3 * plane_width) * y;
      if (tile.source == cuda::PlacedTile::white) {
        std::fill_n(to, 3 * tile.width, std::uint8_t{255});
      } else {
        const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes.data()) + tile.source;
        interleaved_to_rgb(to, from + static_cast<std::size_t>(tile_width * samples) * y, tile.width, samples, colour);
        conversion.apply(to, tile.width);
      }
      std::uint8_t* const grey = luminance.data() + tile.destination + static_cast<std::size_t>(plane_width) * y;
      for (std::uint32_t x = 0; x < tile.width; ++x) {
        grey[x] = slidestream::luminance(to[3 * x], to[3 * x + 1], to[3 * x + 2]);
      }
    }
  }
};

/// Samples of every kind.
inline std::vector<ConvertedTiles> converted_tiles() {
  std::vector<ConvertedTiles> all(8);
  const auto describe = [&all](std::size_t i, Colour colour, int samples, bool in_words) {
    all[i].colour = colour;
    all[i].samples = samples;
    all[i].in_words = in_words;
  };
  describe(0, Colour::rgb, 3, false);
  describe(1, Colour::rgb, 3, true);
  describe(2, Colour::rgb, 4, true);
  describe(3, Colour::ycbcr, 3, true);
  describe(4, Colour::ycbcr, 4, false);
  describe(5, Colour::rgb, 1, false);
  describe(6, Colour::grey_inverted, 1, false);
  describe(7, Colour::rgb, 5, false);
  return all;
}

}  // namespace slidestream::test
