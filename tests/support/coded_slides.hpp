#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "slide/test_images.hpp"
#include "support/pixel_images.hpp"

/// \file
/// Random slides in every coding: tiles of any size, some of them missing or bad.

namespace slidestream::test {

/// What a slide's tiles are made of.
enum class TileCoding {
  grey,
  rgb,
  jpeg_420,
  jpeg_422,
  jpeg_444,
  jpeg_grey,
  jpeg_rgb,
  jpeg2000_rgb,
  jpeg2000_ycbcr,
  jpeg2000_lossless,
};
inline constexpr int tile_codings = 10;

struct CodedSlide {
  TileCoding coding = TileCoding::rgb;
  int width = 300;  ///< pixels
  int height = 200;
  int tile_width = 64;
  int tile_height = 64;
  double mpp = 0.0;  ///< micrometres a pixel; 0: the slide doesn't say
  unsigned seed = 1;
  int levels = 1;         ///< or 2, the second half as wide and high
  int missing_tiles = 0;  ///< of a level, at most so many, at random places
  int bad_tiles = 0;      ///< as well, with bytes that no codec takes
  int damaged_tiles = 0;  ///< as well, with some bytes that are others: codecs may notice or not
  Bytes profile = {};     ///< ICC's, of the first level; empty: none
};

/// A tile's bytes.
inline Bytes encode_tile(const Picture& tile, TileCoding coding) {
  using Coding = JpegOptions::Coding;
  switch (coding) {
    case TileCoding::jpeg_420:
      return encode_jpeg(tile);
    case TileCoding::jpeg_422:
      return encode_jpeg(tile, {.vertical = 1});
    case TileCoding::jpeg_444:
      return encode_jpeg(tile, {.horizontal = 1, .vertical = 1});
    case TileCoding::jpeg_grey:
      return encode_jpeg(tile, {.coding = Coding::grey});
    case TileCoding::jpeg_rgb:
      return encode_jpeg(tile, {.coding = Coding::rgb});
    case TileCoding::jpeg2000_rgb:
      return encode_jpeg2000(tile);
    case TileCoding::jpeg2000_lossless:
      return encode_jpeg2000(tile, {.irreversible = false});
    case TileCoding::jpeg2000_ycbcr:
      return encode_jpeg2000(tile, {.colour_transform = false, .chroma_dx = 2});
    default:
      return to_bytes(tile);
  }
}

/// A level with its tags and tiles. They have room for the resolutions of JPEG 2000 from 24 pixels on.
inline TestDirectory coded_level(const CodedSlide& slide, bool half, unsigned seed) {
  struct Tags {
    std::uint64_t compression, photometric;
  };
  constexpr std::uint64_t none = 1, jpeg = 7, aperio_ycbcr = 33003, aperio_rgb = 33005;
  constexpr std::uint64_t grey = 1, rgb = 2, ycbcr = 6;
  constexpr Tags tags[tile_codings] = {{none, grey},          {none, rgb},      {jpeg, ycbcr}, {jpeg, ycbcr},
                                       {jpeg, ycbcr},         {jpeg, grey},     {jpeg, rgb},   {aperio_rgb, rgb},
                                       {aperio_ycbcr, ycbcr}, {aperio_rgb, rgb}};
  const Tags& tag = tags[static_cast<int>(slide.coding)];
  const Picture whole = tag.photometric == grey ? make_picture(slide.width, slide.height, 1, slide.seed)
                                                : make_stained_picture(slide.width, slide.height, slide.seed);
  const Picture picture = half ? reduced(whole, 2) : whole;
  const int width = picture.width;
  const int height = picture.height;
  TestDirectory directory = tiled_directory(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
                                            static_cast<std::uint32_t>(slide.tile_width),
                                            static_cast<std::uint32_t>(slide.tile_height), picture.samples);
  directory.set_short(259, tag.compression).set_short(262, tag.photometric);
  for (int y = 0; y < height; y += slide.tile_height) {
    for (int x = 0; x < width; x += slide.tile_width) {
      directory.tiles.push_back(encode_tile(cut(picture, x, y, slide.tile_width, slide.tile_height), slide.coding));
    }
  }
  if (!slide.profile.empty() && !half) directory.set_bytes(34675, slide.profile);
  std::mt19937 random(seed);
  const auto any_tile = [&]() -> Bytes& { return directory.tiles[random() % directory.tiles.size()]; };
  for (int i = 0; i < slide.damaged_tiles; ++i) {
    Bytes& tile = any_tile();
    const std::size_t first = tile.size() / 4 + random() % (tile.size() / 2);
    for (std::size_t at = first; at < std::min(first + 8, tile.size()); ++at)
      tile[at] = static_cast<std::byte>(random());
  }
  for (int i = 0; i < slide.missing_tiles; ++i) any_tile().clear();
  for (int i = 0; i < slide.bad_tiles; ++i) any_tile() = Bytes(7, std::byte{0x55});
  return directory;
}

inline void write_coded_slide(const std::filesystem::path& file, const CodedSlide& slide) {
  TestTiff tiff;
  tiff.directories.push_back(coded_level(slide, false, slide.seed));
  if (slide.mpp > 0.0) {
    tiff.directories[0].set_text(270, "Aperio Image Library\r\nx|MPP = " + std::to_string(slide.mpp));
  }
  if (slide.levels > 1) {
    tiff.directories.push_back(coded_level(slide, true, slide.seed + 1).set(254, long_, {1}));
  }
  const Bytes bytes = tiff.bytes();
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Of any coding and tiling: single tiles, images narrower than a tile, tiles of odd sizes.
template <class Random>
CodedSlide random_coded_slide(Random& random) {
  const auto in = [&](int low, int high) { return static_cast<int>(low + random_below(random, high - low + 1)); };
  CodedSlide slide;
  slide.coding = static_cast<TileCoding>(in(0, tile_codings - 1));
  slide.width = in(1, in(0, 3) == 0 ? 40 : 420);
  slide.height = in(1, in(0, 3) == 0 ? 40 : 420);
  const int shape = in(0, 9);
  if (shape == 0) {
    // Wide enough for several tasks in a row of tiles.
    slide.width = in(500, 4500);
    slide.height = in(1, 30);
  } else if (shape == 1) {
    slide.width = in(1, 60);
    slide.height = in(500, 1500);
  }
  slide.tile_width = in(24, in(0, 1) == 0 ? 80 : 250);
  slide.tile_height = in(24, in(0, 1) == 0 ? 80 : 250);
  if (in(0, 1) == 0) slide.tile_width = slide.tile_height = 16 * in(2, 12);
  if (in(0, 3) > 0) slide.mpp = 8.0;
  slide.seed = static_cast<unsigned>(random());
  if (in(0, 2) == 0) slide.missing_tiles = in(1, 3);
  if (in(0, 3) == 0) slide.bad_tiles = in(1, 2);
  if (in(0, 3) == 0) slide.damaged_tiles = in(1, 3);
  return slide;
}

}  // namespace slidestream::test
