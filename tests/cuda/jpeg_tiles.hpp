#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <vector>

#include "cuda/jpeg/jpeg_coding.hpp"
#include "slide/test_tiff.hpp"

/// \file
/// JPEG tiles for tests of the GPU's decoder, and the CPU decoder's verdict on them.

namespace slidestream::test {

struct NamedTile {
  std::string name;
  Bytes bytes;
  cuda::JpegColour colour = cuda::JpegColour::luminance;
  int width = 0;
  int height = 0;
};

/// What a tile is made with.
struct TileOptions {
  enum class Coding { grey, ycbcr, rgb } coding = Coding::ycbcr;
  int horizontal = 2;  ///< sampling factors of the first component
  int vertical = 2;
  int quality = 75;
  int restart_interval = 0;  ///< MCUs
  bool optimised = false;    ///< Huffman tables made for the tile
  bool wide_tables = false;  ///< quantisation values above 255
  enum class Content { texture, noise, flat, edges } content = Content::texture;
};

NamedTile make_tile(int width, int height, const TileOptions& options, unsigned seed);

/// Every sampling, coding, restart interval, quality and content, at even and odd sizes; none larger than 272 pixels.
std::vector<NamedTile> tiles_of_every_kind();

/// A few bytes changed, removed, added or moved, most of them in the scan.
Bytes mutate(const Bytes& tile, std::mt19937& random);

/// All of a tile through the CPU's decoder, for a slide whose tiles have the frame's size; nothing when it is bad.
std::optional<std::vector<std::uint8_t>> decode_with_libjpeg(std::span<const std::byte> bytes, cuda::JpegColour colour,
                                                             const Bytes& tables = {});

/// The JPEGTables of a level.
Bytes level_tables(const Slide& slide, std::size_t level);

}  // namespace slidestream::test
