#include "cuda/jpeg_tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <slidestream/error.hpp>
#include <tuple>

#include "cuda/jpeg/jpeg_header.hpp"
#include "slide/jpeg_decoder.hpp"
#include "slide/jpeg_writer.hpp"

namespace slidestream::test {
namespace {

using Coding = TileOptions::Coding;
using Content = TileOptions::Content;

std::uint8_t sample_at(int x, int y, int s, const TileOptions& options, unsigned seed, std::mt19937& random) {
  switch (options.content) {
    case Content::texture: {
      const double wave = std::sin(0.11 * x + seed + s) + std::cos(0.07 * y * (s + 1) - seed);
      const double noise = static_cast<double>(random() % 31) - 15.0;
      return static_cast<std::uint8_t>(std::clamp(130.0 + 50.0 * wave + noise, 0.0, 255.0));
    }
    case Content::noise:
      return static_cast<std::uint8_t>(random());
    case Content::edges:
      return (x / 3 + y / 5 + s) % 2 == 0 ? 255 : 0;
    case Content::flat:
      break;
  }
  return x < 40 || y > 100 ? 243 : static_cast<std::uint8_t>(200 + random() % 2);
}

const char* name(Coding coding) { return coding == Coding::grey ? "grey" : coding == Coding::rgb ? "rgb" : "ycbcr"; }

Bytes encode(int width, int height, const TileOptions& options, unsigned seed) {
  JpegWriter writer;
  jpeg_compress_struct& jpeg = writer.jpeg;
  jpeg.err->output_message = [](j_common_ptr) {};  // quantisation tables of 16 bits are meant
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = options.coding == Coding::grey ? 1 : 3;
  jpeg.in_color_space = options.coding == Coding::grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  if (options.coding == Coding::rgb) jpeg_set_colorspace(&jpeg, JCS_RGB);
  jpeg.write_Adobe_marker = FALSE;
  if (options.coding != Coding::rgb) {
    jpeg.comp_info[0].h_samp_factor = options.horizontal;
    jpeg.comp_info[0].v_samp_factor = options.vertical;
    for (int i = 1; i < jpeg.num_components; ++i) {
      jpeg.comp_info[i].h_samp_factor = options.chroma_horizontal;
      jpeg.comp_info[i].v_samp_factor = options.chroma_vertical;
    }
  }
  jpeg_set_quality(&jpeg, options.quality, options.wide_tables ? FALSE : TRUE);
  jpeg.optimize_coding = options.optimised ? TRUE : FALSE;
  jpeg.restart_interval = static_cast<unsigned>(options.restart_interval);
  jpeg_start_compress(&jpeg, TRUE);
  std::mt19937 random(seed);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(width) * static_cast<std::size_t>(jpeg.input_components));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int s = 0; s < jpeg.input_components; ++s) {
        row[static_cast<std::size_t>(x * jpeg.input_components + s)] = sample_at(x, y, s, options, seed, random);
      }
    }
    JSAMPROW samples = row.data();
    jpeg_write_scanlines(&jpeg, &samples, 1);
  }
  jpeg_finish_compress(&jpeg);
  return writer.take();
}

/// A comment after SOI, and fill bytes before the next marker.
Bytes with_comment_and_fill(Bytes bytes) {
  const std::array<std::byte, 9> inserted = {std::byte{0xFF}, std::byte{0xFE}, std::byte{0},
                                             std::byte{5},    std::byte{0xFF}, std::byte{0xDA},
                                             std::byte{0xFF}, std::byte{0xFF}, std::byte{0xFF}};
  bytes.insert(bytes.begin() + 2, inserted.begin(), inserted.end());
  return bytes;
}

}  // namespace

const Slide& no_slide() {
  alignas(Slide) static std::byte storage[sizeof(Slide)];
  return reinterpret_cast<const Slide&>(storage);
}

NamedTile make_tile(int width, int height, const TileOptions& options, unsigned seed) {
  NamedTile tile;
  tile.bytes = encode(width, height, options, seed);
  tile.colour = options.coding == Coding::rgb ? Colour::rgb : Colour::ycbcr;
  tile.width = width;
  tile.height = height;
  tile.name = std::string(name(options.coding)) + ' ' + std::to_string(options.horizontal) + 'x' +
              std::to_string(options.vertical) + ", " + std::to_string(width) + 'x' + std::to_string(height) +
              ", quality " + std::to_string(options.quality) + ", restart " + std::to_string(options.restart_interval) +
              (options.optimised ? ", optimised" : "") + ", content " +
              std::to_string(static_cast<int>(options.content));
  return tile;
}

std::vector<NamedTile> tiles_of_every_kind() {
  std::vector<NamedTile> tiles;
  unsigned seed = 0;
  const auto add = [&](int width, int height, TileOptions options) {
    tiles.push_back(make_tile(width, height, options, ++seed));
  };
  constexpr int samplings[][2] = {{2, 2}, {2, 1}, {1, 1}, {1, 2}, {4, 1}, {4, 2}, {1, 4}, {2, 4}, {3, 1}, {3, 2}};
  for (const auto& [h, v] : samplings) {
    const TileOptions options{.horizontal = h, .vertical = v};
    add(64, 64, options);
    add(50, 37, options);
    add(1, 1, options);
    add(272, 16, options);
    TileOptions restarts = options;
    for (const int interval : {1, 2, 3, 7}) {
      restarts.restart_interval = interval;
      restarts.optimised = interval == 3;
      add(72, 56, restarts);
    }
  }
  for (const Coding coding : {Coding::grey, Coding::rgb}) {
    TileOptions options{.coding = coding, .horizontal = 1, .vertical = 1};
    add(240, 240, options);
    add(24, 40, options);
    add(31, 47, options);
    options.optimised = true;
    for (const int interval : {1, 5, 6}) {
      options.restart_interval = interval;
      add(64, 24, options);
    }
  }
  for (const Coding coding : {Coding::grey, Coding::ycbcr, Coding::rgb}) {
    for (const Content content : {Content::noise, Content::flat, Content::edges}) {
      for (const int quality : {1, 20, 75, 100}) {
        TileOptions options{.coding = coding, .quality = quality, .content = content};
        if (coding != Coding::ycbcr) options.horizontal = options.vertical = 1;
        add(48, 32, options);
        options.optimised = true;
        options.wide_tables = quality == 1;
        add(48, 32, options);
      }
    }
  }
  add(256, 256, {});
  tiles.push_back(make_tile(64, 64, {}, 99));
  tiles.back().name += ", with a comment and fill bytes";
  tiles.back().bytes = with_comment_and_fill(tiles.back().bytes);
  return tiles;
}

std::vector<NamedTile> tiles_for_rgb() {
  std::vector<NamedTile> tiles;
  unsigned seed = 500;
  using Size = std::pair<int, int>;
  for (const auto& [h, v, chroma_h, chroma_v] : {std::tuple(2, 2, 2, 1),
                                                 {2, 2, 1, 2},
                                                 {4, 1, 2, 1},
                                                 {2, 1, 2, 1},
                                                 {1, 2, 1, 2},
                                                 {2, 2, 1, 1},
                                                 {2, 1, 1, 1},
                                                 {1, 2, 1, 1},
                                                 {1, 1, 1, 1}}) {
    for (const auto& [width, height] :
         {Size(64, 48), Size(33, 31), Size(2, 2), Size(3, 40), Size(5, 4), Size(4, 9), Size(512, 40), Size(528, 33)}) {
      const TileOptions options{
          .horizontal = h, .vertical = v, .chroma_horizontal = chroma_h, .chroma_vertical = chroma_v, .quality = 90};
      tiles.push_back(make_tile(width, height, options, ++seed));
    }
  }
  // Colours that don't exist, so that the conversion clamps.
  for (const auto& [h, v] : {std::pair(2, 2), {2, 1}, {1, 1}}) {
    NamedTile tile = make_tile(64, 64, {.coding = Coding::rgb, .quality = 100, .content = Content::edges}, ++seed);
    if (h * v == 1) tile.colour = Colour::ycbcr;
    tiles.push_back(tile);
    tiles.push_back(
        make_tile(64, 64, {.horizontal = h, .vertical = v, .quality = 100, .content = Content::noise}, ++seed));
    // The same under the tag RGB, which sampling overrules, or the components' names and tables.
    tiles.push_back(make_tile(64, 34, {.horizontal = h, .vertical = v}, ++seed));
    tiles.back().colour = Colour::rgb;
    tiles.back().name += ", tag RGB";
  }
  return tiles;
}

Bytes mutate(const Bytes& tile, std::mt19937& random) {
  Bytes mutant = tile;
  const std::size_t header = std::min<std::size_t>(tile.size() - 1, 600);
  const int changes = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < changes && mutant.size() > 4; ++i) {
    const bool in_scan = random() % 8 != 0 && mutant.size() > header + 1;
    const std::size_t at = in_scan ? header + random() % (mutant.size() - header) : random() % mutant.size();
    switch (random() % 8) {
      case 0:
        mutant.erase(mutant.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        mutant.insert(mutant.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::byte>(random()));
        break;
      case 2:
        mutant.resize(std::max<std::size_t>(4, mutant.size() - random() % 40));
        break;
      case 3:
        mutant[at] = std::byte{0xFF};
        break;
      case 4:
        mutant[at] = static_cast<std::byte>(random());
        break;
      default:
        mutant[at] ^= static_cast<std::byte>(1U << random() % 8);
    }
  }
  return mutant;
}

TileDemand whole_tile(Colour colour, std::int64_t width, std::int64_t height, const PixelFormat& format) {
  return {colour, width, height, width, height, format};
}

std::optional<TileDemand> demand_of_frame(std::span<const std::byte> bytes, Colour colour, const Bytes& tables,
                                          const PixelFormat& format) {
  cuda::JpegTableReferences references;
  cuda::parse_jpeg_tables(tables, references);
  cuda::JpegHeader header;
  if (cuda::parse_jpeg_header(bytes, references, header) != cuda::JpegReason::none) return std::nullopt;
  return whole_tile(colour, header.width, header.height, format);
}

std::optional<std::vector<std::uint8_t>> decode_with_libjpeg(std::span<const std::byte> bytes, const TileDemand& demand,
                                                             const Bytes& tables) {
  Level level;
  level.tile_width = demand.width;
  level.tile_height = demand.height;
  level.colour = demand.colour;
  LevelCoding coding;
  coding.jpeg_tables = tables;
  const int channels = demand.format.channels;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(channels * demand.width * demand.height));
  const HostPixels view{pixels.data(), channels * demand.width, demand.width, demand.height, demand.format};
  try {
    JpegDecoder().decode({no_slide(), 0, level, coding, 0, demand, 0, 0, view}, bytes);
  } catch (const TileError&) {
    return std::nullopt;
  }
  return pixels;
}

DeviceTile luminance_of(const DeviceTile& tile) {
  DeviceTile made = tile;
  made.demand.format = luminance_format;
  return made;
}

std::size_t row_bytes(const DeviceTile& tile) {
  return static_cast<std::size_t>(tile.width) * tile.demand.format.pixel_bytes();
}

std::vector<std::uint8_t> part_of(const std::vector<std::uint8_t>& whole, const DeviceTile& tile) {
  std::vector<std::uint8_t> part;
  const auto channels = static_cast<std::ptrdiff_t>(tile.demand.format.pixel_bytes());
  for (int y = tile.from_y; y < tile.from_y + tile.height; ++y) {
    const auto row = whole.begin() + (y * tile.demand.width + tile.from_x) * channels;
    part.insert(part.end(), row, row + tile.width * channels);
  }
  return part;
}

Bytes level_tables(const Slide& slide, std::size_t level) { return coding_of(slide, level).jpeg_tables; }

}  // namespace slidestream::test
