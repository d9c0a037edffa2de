#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <vector>

#include "codec/tile_rule.hpp"
#include "cuda/jpeg/jpeg_header.hpp"
#include "slide/test_tiff.hpp"

/// \file
/// JPEG tiles for tests of the GPU's decoder, and the CPU decoder's verdict on them.

namespace slidestream::test {

struct NamedTile {
  std::string name;
  Bytes bytes;
  Colour colour = Colour::ycbcr;
  int width = 0;
  int height = 0;
};

/// What a tile is made with.
struct TileOptions {
  enum class Coding { grey, ycbcr, rgb } coding = Coding::ycbcr;
  int horizontal = 2;  ///< sampling factors of the first component
  int vertical = 2;
  int chroma_horizontal = 1;  ///< of the others
  int chroma_vertical = 1;
  int quality = 75;
  int restart_interval = 0;  ///< MCUs
  bool optimised = false;    ///< Huffman tables made for the tile
  bool wide_tables = false;  ///< quantisation values above 255
  enum class Content { texture, noise, flat, edges } content = Content::texture;
};

NamedTile make_tile(int width, int height, const TileOptions& options, unsigned seed);

/// Every sampling, coding, restart interval, quality and content, at even and odd sizes; none larger than 272 pixels.
std::vector<NamedTile> tiles_of_every_kind();

/// More for RGB: other samplings of the chroma, odd sizes, and stretches side by side.
std::vector<NamedTile> tiles_for_rgb();

/// A few bytes changed, removed, added or moved, most of them in the scan.
Bytes mutate(const Bytes& tile, std::mt19937& random);

/// The decoders ask the slide nothing, but want a reference.
const Slide& no_slide();

/// What a slide asks of a tile that lies inside the image in whole.
TileDemand whole_tile(Colour colour, std::int64_t width, std::int64_t height,
                      const PixelFormat& format = luminance_format);

/// The same, the tile's size being what its frame header says; nothing where the header isn't for the device.
std::optional<TileDemand> demand_of_frame(std::span<const std::byte> bytes, Colour colour, const Bytes& tables = {},
                                          const PixelFormat& format = luminance_format);

/// All of a tile through the CPU's decoder, in the tile's size, white beyond the frame; nothing when it is bad.
std::optional<std::vector<std::uint8_t>> decode_with_libjpeg(std::span<const std::byte> bytes, const TileDemand& demand,
                                                             const Bytes& tables = {});

/// A tile to decode, the part of it that is wanted, and how its part of the plane lies.
struct DeviceTile {
  const Bytes* bytes = nullptr;
  TileDemand demand;
  int from_x = 0;
  int from_y = 0;
  int width = 0;
  int height = 0;
  int misalignment = 0;  ///< bytes; 0: as slides' tiles lie, in rows of a multiple of 64 bytes
};

/// The same part of the tile's luminance.
DeviceTile luminance_of(const DeviceTile& tile);

/// Bytes of a row of the part that is wanted.
std::size_t row_bytes(const DeviceTile& tile);

/// That part of the whole decoded tile.
std::vector<std::uint8_t> part_of(const std::vector<std::uint8_t>& whole, const DeviceTile& tile);

struct DeviceResult {
  cuda::JpegReason reason;  ///< the parser's, or the decoder's verdict
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> luminance;  ///< where the batch has it beside RGB
};

/// The JPEGTables of a level.
Bytes level_tables(const Slide& slide, std::size_t level);

}  // namespace slidestream::test
