#include "cuda/jpeg2000_tiles.hpp"

#include <algorithm>
#include <random>
#include <slidestream/error.hpp>

#include "slide/jpeg2000_decoder.hpp"
#include "slide/test_images.hpp"

namespace slidestream::test {
namespace {

class TileMaker {
 public:
  explicit TileMaker(const WhichTiles& which) : which_(which) {}

  /// A tile whose pixels are component 0 alone, unless `colour` says otherwise.
  void add(const std::string& name, int width, int height, Jpeg2000Options options, Colour colour = Colour::ycbcr) {
    // Components that the encoder transforms are a slide's RGB.
    if (options.colour_transform && options.irreversible) colour = Colour::rgb;
    ++seed_;
    if (!is_wanted(width, height)) {
      ++made_;
      return;
    }
    const Picture picture =
        seed_ % 3 == 0 ? make_picture(width, height, 3, seed_) : make_stained_picture(width, height, seed_);
    add(name, picture, options, colour);
  }
  void add(const std::string& name, const Picture& picture, const Jpeg2000Options& options, Colour colour) {
    const bool wanted = is_wanted(picture.width, picture.height);
    ++made_;
    if (!wanted) return;
    tiles.push_back({name, encode_jpeg2000(picture, options), colour, picture.width, picture.height});
  }

  std::vector<NamedTile> tiles;

 private:
  bool is_wanted(int width, int height) const {
    return made_ % which_.every == 0 && tiles.size() < which_.most && width * height <= which_.most_pixels;
  }

  WhichTiles which_;
  std::size_t made_ = 0;
  unsigned seed_ = 0;
};

Picture noise(int width, int height, int samples) {
  Picture picture{width, height, samples, {}};
  std::mt19937 random(9);
  for (int i = 0; i < width * height * samples; ++i) picture.data.push_back(static_cast<std::uint8_t>(random() >> 24));
  return picture;
}

Picture flat(int width, int height, std::uint8_t value) {
  return {width, height, 3, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height), value)};
}

}  // namespace

std::vector<NamedTile> jpeg2000_tiles_of_every_kind(const WhichTiles& which) {
  TileMaker maker(which);
  const auto number = [](int n) { return std::to_string(n); };
  for (int progression = 0; progression < 5; ++progression) {
    for (const bool several : {false, true}) {
      Jpeg2000Options options{.levels = 5, .progression = progression};
      if (several) {
        options.layers = 4;
        options.sop_markers = progression % 2 == 0;
        options.eph_markers = progression % 3 == 0;
        options.levels = 2;
        options.precincts = {128, 64};
        options.tile_parts = "LRCRL"[progression];
        options.packet_lengths = progression > 2;
      }
      maker.add("progression " + number(progression) + (several ? ", several of all" : ""), 240 - 3 * progression, 200,
                options);
    }
  }
  const int sizes[][2] = {{256, 256}, {255, 241}, {100, 37}, {3, 256},  {256, 2}, {65, 129},
                          {17, 16},   {33, 32},   {7, 5},    {250, 64}, {5, 4},   {9, 2}};
  for (const auto& size : sizes) {
    for (int levels = 1; levels < 7; levels += 2) {
      // OpenJPEG's encoder doesn't go on below one sample.
      if (std::min(size[0], size[1]) < 1 << levels) continue;
      for (const bool irreversible : {true, false}) {
        Jpeg2000Options options{.irreversible = irreversible, .colour_transform = irreversible, .levels = levels};
        options.rate = levels == 3 ? 1.5F : 6;
        options.block_width = levels == 3 ? 32 : 64;
        options.block_height = levels == 5 ? 16 : 64;
        maker.add(number(size[0]) + "x" + number(size[1]) + ", " + number(levels) + " levels" +
                      (irreversible ? "" : ", reversible"),
                  size[0], size[1], options);
      }
    }
  }
  for (const float rate : {1.0F, 3.0F, 20.0F, 100.0F, 1000.0F}) {
    maker.add("rate " + number(static_cast<int>(rate)), 256, 256, {.levels = 5, .rate = rate});
    maker.add("reversible, rate " + number(static_cast<int>(rate)), 128, 100,
              {.irreversible = false, .colour_transform = false, .layers = 3, .rate = rate});
  }
  const int blocks[][2] = {{4, 4}, {4, 64}, {64, 4}, {8, 32}, {16, 16}, {32, 8}};
  for (const auto& block : blocks) {
    maker.add("blocks of " + number(block[0]) + "x" + number(block[1]), 45, 37,
              {.block_width = block[0], .block_height = block[1], .layers = 2, .rate = 2});
  }
  for (int dy = 1; dy < 3; ++dy) {
    maker.add("subsampled", 240, 239, {.colour_transform = false, .chroma_dx = 2, .chroma_dy = dy, .progression = 2});
    maker.add("subsampled, precincts", 160, 131,
              {.colour_transform = false,
               .chroma_dx = 2,
               .chroma_dy = dy,
               .progression = 3 + dy % 2,
               .layers = 2,
               .precincts = {64, 64, 32}});
  }
  maker.add("grey", make_picture(200, 150, 1, 4), {}, Colour::grey);
  maker.add("grey, inverted", make_picture(200, 150, 1, 5), {.irreversible = false}, Colour::grey_inverted);
  maker.add("four components", make_picture(90, 70, 4, 6), {}, Colour::rgb);
  maker.add("noise", noise(256, 256, 3), {.levels = 5, .rate = 1}, Colour::rgb);
  maker.add("noise, reversible", noise(130, 70, 1), {.irreversible = false}, Colour::grey);
  maker.add("RGB, reversible", 131, 120, {.irreversible = false, .levels = 4}, Colour::rgb);
  maker.add("RGB, reversible, noise", noise(64, 64, 3), {.irreversible = false}, Colour::rgb);
  maker.add("RGB, reversible, layers", 90, 77, {.irreversible = false, .progression = 2, .layers = 3, .rate = 12},
            Colour::rgb);
  maker.add("RGB without a transform", 90, 101, {.colour_transform = false}, Colour::rgb);
  maker.add("RGB without a transform, reversible", 77, 64, {.irreversible = false, .colour_transform = false},
            Colour::rgb);
  maker.add("RGB, subsampled", 77, 64, {.colour_transform = false, .chroma_dx = 2, .chroma_dy = 2}, Colour::rgb);
  maker.add("subsampled, reversible", 131, 67,
            {.irreversible = false, .colour_transform = false, .chroma_dx = 2, .chroma_dy = 1});
  // What an encoder takes for RGB and the slide for YCbCr.
  maker.add("YCbCr, transformed again", make_picture(80, 70, 3, 8), {}, Colour::ycbcr);
  maker.add("YCbCr, transformed again, reversible", make_picture(80, 70, 3, 8), {.irreversible = false}, Colour::ycbcr);
  for (const int style : {2, 8, 32}) {
    maker.add("style " + number(style), 60, 77, {.layers = 2, .rate = 4, .block_style = style});
  }
  maker.add("styles, small blocks, reversible", 45, 37,
            {.irreversible = false, .block_width = 8, .block_height = 16, .rate = 1, .block_style = 42}, Colour::rgb);
  maker.add("JP2", 64, 64, {.jp2 = true});
  maker.add("white", flat(256, 256, 255), {.levels = 5}, Colour::rgb);
  maker.add("black", flat(64, 64, 0), {.levels = 5}, Colour::rgb);
  return maker.tiles;
}

std::vector<NamedTile> jpeg2000_large_tiles(const WhichTiles& which) {
  TileMaker maker(which);
  maker.add("512x512", 512, 512, {.levels = 5});
  maker.add("512x512, reversible", 512, 512, {.irreversible = false, .levels = 5}, Colour::rgb);
  maker.add("300x200", 300, 200, {});
  maker.add("257x3", 257, 3, {.levels = 1});
  maker.add("5x999", 5, 999, {.levels = 2});
  maker.add("700x16, small blocks", 700, 16, {.levels = 2, .block_width = 16, .block_height = 4});
  maker.add("300x130, subsampled", 300, 130, {.colour_transform = false, .chroma_dx = 2, .chroma_dy = 2});
  maker.add("301x99, layers and precincts", 301, 99,
            {.levels = 4, .progression = 2, .layers = 3, .precincts = {128, 128, 64}, .tile_parts = 'R'});
  maker.add("256x256, many blocks", 256, 256, {.levels = 4, .block_width = 8, .block_height = 8});
  maker.add("grey", make_picture(400, 300, 1, 4), {}, Colour::grey);
  // The largest stand last, where they may be left out.
  maker.add("1024x1024", 1024, 1024, {.levels = 6});
  maker.add("1000x1023, reversible", 1000, 1023,
            {.irreversible = false, .levels = 5, .block_width = 32, .block_height = 32}, Colour::rgb);
  return maker.tiles;
}

std::vector<NamedTile> jpeg2000_tiles_for_the_cpu() {
  TileMaker maker({});
  maker.add("bypass", 64, 64, {.block_style = 1});
  maker.add("termination", 64, 64, {.block_style = 4});
  maker.add("predictable termination", 64, 64, {.block_style = 16});
  maker.add("all styles", 64, 64, {.block_style = 63});
  maker.add("no levels", 64, 64, {.levels = 0});
  maker.add("too large a tile", 1040, 24, {});
  maker.add("several tiles", 200, 200, {.tile_size = 128});
  maker.add("bypass, large", 300, 280, {.block_style = 1});
  maker.add("wide blocks", 256, 64, {.block_width = 128, .block_height = 32});
  return maker.tiles;
}

std::vector<NamedTile> jpeg2000_tiles_of_slide(const std::filesystem::path& path) {
  std::vector<NamedTile> tiles;
  const auto slide = Slide::open(path);
  for (std::size_t l = 0; l < slide->info().levels.size(); ++l) {
    const Level& level = slide->info().levels[l];
    if (level.codec != Codec::jpeg2000) continue;
    for (std::int64_t i = 0; i < level.columns * level.rows; ++i) {
      const TileRange range = slide->tile(l, i);
      if (range.length == 0) continue;
      Bytes bytes(static_cast<std::size_t>(range.length));
      slide->read(range.offset, bytes);
      tiles.push_back({"level " + std::to_string(l) + ", tile " + std::to_string(i), std::move(bytes), level.colour,
                       static_cast<int>(level.tile_width), static_cast<int>(level.tile_height)});
    }
  }
  return tiles;
}

Bytes jpeg2000_mutant(const Bytes& tile, std::mt19937& random) {
  if (random() % 4 == 0) return mutate(tile, random);
  Bytes mutant = tile;
  const std::size_t header = std::min<std::size_t>(mutant.size() / 2, 200);
  for (auto changes = 1 + random() % 6; changes > 0; --changes) {
    const std::size_t at = header + random() % (mutant.size() - header);
    mutant[at] = static_cast<std::byte>(random() % 3 == 0 ? 0xFF : random());
    // Behind 0xFF a carry, or the end.
    if (mutant[at] == std::byte{0xFF} && at + 1 < mutant.size())
      mutant[at + 1] = static_cast<std::byte>(0x80 + random() % 18);
  }
  return mutant;
}

std::optional<std::vector<std::uint8_t>> decode_with_openjpeg(std::span<const std::byte> bytes,
                                                              const TileDemand& demand) {
  Level level;
  level.tile_width = demand.width;
  level.tile_height = demand.height;
  level.colour = demand.colour;
  const LevelCoding coding;
  const int channels = demand.format.channels;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(channels * demand.width * demand.height));
  const HostPixels view{pixels.data(), channels * demand.width, demand.width, demand.height, demand.format};
  try {
    decode_jpeg2000({no_slide(), 0, level, coding, 0, demand, 0, 0, view}, bytes);
  } catch (const TileError&) {
    return std::nullopt;
  }
  return pixels;
}

}  // namespace slidestream::test
