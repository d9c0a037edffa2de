// Tiles to RGB, against libjpeg-turbo, OpenJPEG and the pictures themselves.

#include <doctest/doctest.h>

#include <algorithm>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <tuple>

#include "codec/ycbcr.hpp"
#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Coding = JpegOptions::Coding;
using Pixels = std::vector<std::uint8_t>;

constexpr std::uint64_t grey_photometric = 1, white_is_zero = 0, rgb_photometric = 2, ycbcr_photometric = 6;
constexpr std::uint64_t jpeg = 7;

struct Layout {
  std::uint64_t compression = jpeg;
  std::uint64_t photometric = ycbcr_photometric;
  int samples = 3;
  int width = 64;
  int height = 48;
};

/// A slide of one tile.
class OneTile {
 public:
  OneTile(const Bytes& tile, const Layout& layout) {
    const auto width = static_cast<std::uint32_t>(layout.width), height = static_cast<std::uint32_t>(layout.height);
    TestTiff tiff;
    tiff.directories.push_back(tiled_directory(width, height, width, height, layout.samples));
    tiff.directories[0].set_short(259, layout.compression).set_short(262, layout.photometric);
    tiff.directories[0].tiles = {tile};
    slide = Slide::open(folder_.write("slide.svs", tiff.bytes()));
  }
  std::shared_ptr<const Slide> slide;

 private:
  TemporaryFolder folder_;
};

Pixels read(const Bytes& tile, const Layout& layout) { return read_level_rgb(*OneTile(tile, layout).slide); }

std::string error_of(const Bytes& tile, const Layout& layout) {
  try {
    read(tile, layout);
    return "";
  } catch (const SlideError& error) {
    return error.what();
  }
}

Pixels inverted(Pixels pixels) {
  for (std::uint8_t& v : pixels) v = static_cast<std::uint8_t>(255 - v);
  return pixels;
}

/// The formula, pixel by pixel, of the first three samples.
Pixels converted(const Picture& ycbcr) {
  Pixels pixels;
  for (int y = 0; y < ycbcr.height; ++y) {
    for (int x = 0; x < ycbcr.width; ++x) {
      const std::uint8_t* p = ycbcr.at(x, y);
      const Rgb rgb = ycbcr_to_rgb(p[0], p[1], p[2]);
      pixels.insert(pixels.end(), {rgb.red, rgb.green, rgb.blue});
    }
  }
  return pixels;
}

/// A picture whose samples 1 and 2 are those of the first column of each `dx`.
Picture with_repeated_columns(Picture picture, int dx) {
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      for (int s = 1; s < 3; ++s) {
        picture.data[static_cast<std::size_t>((y * picture.width + x) * picture.samples + s)] =
            picture.at(x / dx * dx, y)[s];
      }
    }
  }
  return picture;
}

}  // namespace

TEST_CASE("the formula of YCbCr is libjpeg's") {
  static_assert(ycbcr_to_rgb(255, 128, 128).green == 255);
  // Noise at the best quality has all kinds of samples, also those whose colour doesn't exist.
  Picture noise = make_picture(250, 200, 3, 1);
  for (std::size_t i = 0; i < noise.data.size(); ++i) noise.data[i] = static_cast<std::uint8_t>(i * i % 251 * 11);
  const Bytes tile = encode_jpeg(noise, {.coding = Coding::rgb, .quality = 100});
  const Picture components = decode_jpeg_components(tile);
  CHECK(std::count(components.data.begin(), components.data.end(), 0) > 100);
  CHECK(std::count(components.data.begin(), components.data.end(), 255) > 100);
  CHECK(converted(components) == decode_jpeg_rgb(tile).data);
}

TEST_CASE("YCbCr JPEG is libjpeg-turbo's RGB output, at every sampling and size") {
  // Horizontal and vertical, of the first component and of the others.
  constexpr int samplings[][4] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {2, 2, 1, 1}, {1, 2, 1, 1}, {4, 1, 1, 1},
                                  {1, 4, 1, 1}, {4, 2, 1, 1}, {2, 4, 1, 1}, {3, 1, 1, 1}, {3, 2, 1, 1},
                                  {2, 2, 2, 1}, {2, 2, 1, 2}, {4, 1, 2, 1}, {2, 1, 2, 1}};
  constexpr int sizes[][2] = {{64, 48}, {33, 31}, {1, 1}, {3, 2}, {5, 17}, {4, 4}, {2, 40}, {47, 16}, {130, 9}};
  for (const auto& factors : samplings) {
    for (const auto& size : sizes) {
      for (const bool progressive : {false, true}) {
        INFO("sampling ", factors[0], " x ", factors[1], ", chroma ", factors[2], " x ", factors[3], ", ", size[0],
             " x ", size[1], ", progressive ", progressive);
        const Bytes tile = encode_jpeg(make_picture(size[0], size[1], 3, 2), {.horizontal = factors[0],
                                                                              .vertical = factors[1],
                                                                              .chroma_horizontal = factors[2],
                                                                              .chroma_vertical = factors[3],
                                                                              .progressive = progressive});
        REQUIRE(read(tile, {.width = size[0], .height = size[1]}) == decode_jpeg_rgb(tile).data);
      }
    }
  }
}

TEST_CASE("photometric says what a JPEG's components are, where nothing else does") {
  const Picture picture = make_picture(64, 48, 3, 3);
  const Bytes as_rgb = encode_jpeg(picture, {.coding = Coding::rgb});
  CHECK(read(as_rgb, {.photometric = rgb_photometric}) == decode_jpeg_components(as_rgb).data);
  const Bytes even = encode_jpeg(picture, {.horizontal = 1, .vertical = 1});
  CHECK(read(even, {.photometric = ycbcr_photometric}) == decode_jpeg_rgb(even).data);
  CHECK(read(even, {.photometric = rgb_photometric}) == decode_jpeg_rgb(even).data);  // by names and tables
  const Bytes plain = encode_jpeg(picture, {.coding = Coding::unknown});
  CHECK(read(plain, {.photometric = ycbcr_photometric}) == decode_jpeg_rgb(plain).data);
  CHECK(read(plain, {.photometric = rgb_photometric}) == decode_jpeg_rgb(plain, true).data);
  // Luminance of RGB is the formula of the very same samples.
  const OneTile slide(as_rgb, {.photometric = rgb_photometric});
  CHECK(read_level(*slide.slide) == formula({64, 48, 3, read_level_rgb(*slide.slide)}));
}

TEST_CASE("grey JPEG, inverted grey, and extra components") {
  const Bytes grey = encode_jpeg(make_picture(64, 48, 1, 4), {.coding = Coding::grey});
  const Pixels expected = rgb_of(decode_jpeg_grey(grey));
  CHECK(read(grey, {.photometric = grey_photometric, .samples = 1}) == expected);
  CHECK(read(grey, {.photometric = rgb_photometric}) == expected);
  CHECK(read(grey, {.photometric = ycbcr_photometric}) == expected);
  CHECK(read(grey, {.photometric = white_is_zero, .samples = 1}) == inverted(expected));
  const Bytes two = encode_jpeg(make_picture(64, 48, 2, 5), {.coding = Coding::unknown});
  CHECK(read(two, {.photometric = grey_photometric, .samples = 2}) == rgb_of(decode_jpeg_components(two)));
  CHECK(read(two, {.photometric = white_is_zero, .samples = 2}) == inverted(rgb_of(decode_jpeg_components(two))));
  const Bytes four = encode_jpeg(make_picture(64, 48, 4, 6), {.coding = Coding::unknown});
  CHECK(read(four, {.photometric = rgb_photometric, .samples = 4}) == rgb_of(decode_jpeg_components(four)));
  CHECK(read(four, {.photometric = ycbcr_photometric, .samples = 4}) == converted(decode_jpeg_components(four)));
}

TEST_CASE("what libjpeg can't upsample, and damaged data, are bad") {
  const Picture picture = make_picture(64, 48, 3, 7);
  Bytes odd = encode_jpeg(picture, {.horizontal = 1, .vertical = 1});
  for (std::size_t i = 0; i + 17 < odd.size(); ++i) {
    if (odd[i] != std::byte{0xFF} || odd[i + 1] != std::byte{0xC0}) continue;
    for (const std::size_t component : {0, 1, 2}) odd[i + 11 + 3 * component] = std::byte{0x21};
    odd[i + 11] = std::byte{0x31};
  }
  CHECK(error_of(odd, {}).find("level 0 tile 0 (column 0, row 0): Fractional sampling") != std::string::npos);
  const Bytes tile = encode_jpeg(picture);
  for (std::size_t length = 1; length + 3 < tile.size(); length += 1 + length / 20) {
    CHECK_FALSE(error_of(Bytes(tile.begin(), tile.begin() + static_cast<std::ptrdiff_t>(length)), {}).empty());
  }
  CHECK(error_of(encode_jpeg(make_picture(64, 48, 4, 8), {.coding = Coding::unknown}),
                 {.photometric = grey_photometric, .samples = 1})
            .find("4 components") != std::string::npos);
}

TEST_CASE("any part of a tile is the same part of the whole, and nothing else is written") {
  const Picture picture = make_picture(64, 48, 3, 9);
  const Bytes grey = encode_jpeg(make_picture(64, 48, 1, 9), {.coding = Coding::grey});
  for (const auto& [tile, layout] :
       {std::pair(encode_jpeg(picture), Layout{}),
        {encode_jpeg(picture, {.coding = Coding::rgb}), {.photometric = rgb_photometric}},
        {grey, {.photometric = white_is_zero, .samples = 1}},
        {encode_jpeg2000(picture), {.compression = 33005, .photometric = rgb_photometric}},
        {encode_jpeg2000(picture, {.colour_transform = false, .chroma_dx = 2}), {.compression = 33003}},
        {to_bytes(picture), {.compression = 1, .photometric = rgb_photometric}}}) {
    const OneTile file(tile, layout);
    const Pixels whole = read_level_rgb(*file.slide);
    TileDecoder decoder;
    for (const auto& [x, y, width, height] :
         {std::tuple(0, 0, 64, 48), {0, 7, 64, 9}, {5, 0, 59, 48}, {0, 0, 63, 1}, {63, 47, 1, 1}}) {
      Pixels out(200 * 50, 99);
      decoder.decode(*file.slide, 0, 0, tile, x, y, {out.data(), 200, width, height, rgb_format});
      for (int row = 0; row < 50; ++row) {
        for (int i = 0; i < 200; ++i) {
          const bool inside = row < height && i < 3 * width;
          REQUIRE(out[row * 200 + i] == (inside ? whole[((y + row) * 64 + x) * 3 + i] : 99));
        }
      }
    }
  }
}

TEST_CASE("RGB and luminance decoded together are what each is alone") {
  const Picture picture = make_picture(64, 48, 3, 12);
  const Bytes grey = encode_jpeg(make_picture(64, 48, 1, 9), {.coding = Coding::grey});
  const Bytes small = encode_jpeg(cut(picture, 0, 0, 41, 33));
  for (const auto& [tile, layout] :
       {std::pair(encode_jpeg(picture), Layout{}),
        {encode_jpeg(picture, {.horizontal = 2, .vertical = 1}), Layout{}},
        {encode_jpeg(picture, {.coding = Coding::rgb}), {.photometric = rgb_photometric}},
        {grey, Layout{}},
        {grey, {.photometric = white_is_zero, .samples = 1}},
        {encode_jpeg2000(picture), {.compression = 33005, .photometric = rgb_photometric}},
        {encode_jpeg2000(picture, {.colour_transform = false, .chroma_dx = 2}), {.compression = 33003}},
        {to_bytes(picture), {.compression = 1, .photometric = rgb_photometric}}}) {
    const OneTile file(tile, layout);
    for (const auto& [x, y, width, height] : {std::tuple(0, 0, 64, 48), {5, 7, 50, 20}, {63, 47, 1, 1}}) {
      const auto bytes_of = [](int channels) {
        return std::vector<std::uint8_t>(static_cast<std::size_t>(200 * 50 * channels), 99);
      };
      std::vector<std::uint8_t> rgb = bytes_of(3), rgb_too = rgb, grey_alone = bytes_of(1), grey_too = grey_alone;
      TileDecoder decoder;
      decoder.decode(*file.slide, 0, 0, tile, x, y, {rgb.data(), 600, width, height, rgb_format});
      decoder.decode(*file.slide, 0, 0, tile, x, y, {grey_alone.data(), 200, width, height});
      decoder.decode_both(*file.slide, 0, 0, tile, x, y, {rgb_too.data(), 600, width, height, rgb_format},
                          {grey_too.data(), 200, width, height});
      CHECK(rgb == rgb_too);
      CHECK(grey_alone == grey_too);
    }
  }
  // A frame that is smaller than its tile, where only the part inside is asked for.
  TestTiff tiff;
  tiff.directories.push_back(tiled_directory(41, 33, 64, 48, 3).set_short(259, 7).set_short(262, ycbcr_photometric));
  tiff.directories[0].tiles = {small};
  const TemporaryFolder folder;
  const auto slide = Slide::open(folder.write("slide.svs", tiff.bytes()));
  std::vector<std::uint8_t> rgb(64 * 48 * 3), rgb_too(rgb), grey_alone(64 * 48), grey_too(grey_alone);
  TileDecoder decoder;
  decoder.decode(*slide, 0, 0, small, 0, 0, {rgb.data(), 192, 64, 48, rgb_format});
  decoder.decode(*slide, 0, 0, small, 0, 0, {grey_alone.data(), 64, 64, 48});
  decoder.decode_both(*slide, 0, 0, small, 0, 0, {rgb_too.data(), 192, 64, 48, rgb_format},
                      {grey_too.data(), 64, 64, 48});
  CHECK(rgb == rgb_too);
  CHECK(grey_alone == grey_too);
}

TEST_CASE("missing tiles and what lies beyond a small edge tile are white") {
  // 90 x 70 pixels: four tiles of 64 x 48.
  const Picture picture = make_picture(96, 96, 3, 10);
  const Bytes a = encode_jpeg(cut(picture, 0, 0, 64, 48));
  const Bytes edge = encode_jpeg(cut(picture, 64, 48, 26, 22));
  TestTiff tiff;
  tiff.directories.push_back(tiled_directory(90, 70, 64, 48, 3).set_short(259, 7).set_short(262, ycbcr_photometric));
  tiff.directories[0].tiles = {a, {}, {}, edge};
  const TemporaryFolder folder;
  const auto slide = Slide::open(folder.write("slide.svs", tiff.bytes()));
  const Pixels pixels = read_level_rgb(*slide);
  const Picture first = decode_jpeg_rgb(a), last = decode_jpeg_rgb(edge);
  for (int y = 0; y < 70; ++y) {
    for (int x = 0; x < 90; ++x) {
      const bool missing = (x < 64) != (y < 48);
      const std::uint8_t white[] = {255, 255, 255};
      const std::uint8_t* expected = missing ? white : x < 64 ? first.at(x, y) : last.at(x - 64, y - 48);
      REQUIRE(std::equal(expected, expected + 3, &pixels[static_cast<std::size_t>((y * 90 + x) * 3)]));
    }
  }
  Pixels whole(64 * 48 * 3, 1);
  TileDecoder().decode(*slide, 0, 3, edge, 0, 0, {whole.data(), 64 * 3, 64, 48, rgb_format});
  CHECK(std::all_of(whole.begin() + 26 * 3, whole.begin() + 64 * 3, [](std::uint8_t v) { return v == 255; }));
  CHECK(std::all_of(whole.begin() + 22 * 64 * 3, whole.end(), [](std::uint8_t v) { return v == 255; }));
}

TEST_CASE("JPEG 2000: what OpenJPEG gives, its colour transform undone, and YCbCr by the formula, chroma repeated") {
  const Picture picture = make_picture(64, 48, 3, 11);
  for (const bool irreversible : {false, true}) {
    for (const bool transform : {false, true}) {
      const Bytes tile = encode_jpeg2000(picture, {.irreversible = irreversible, .colour_transform = transform});
      const Picture decoded = decode_jpeg2000_rgb(tile);
      for (const std::uint64_t compression : {33004, 33005, 34712}) {
        CHECK(read(tile, {.compression = compression, .photometric = rgb_photometric}) == decoded.data);
      }
      // YCbCr by the tag, unless the codestream has transformed colours.
      CHECK(read(tile, {.compression = 33003}) == (transform ? decoded.data : converted(decoded)));
      CHECK(read(tile, {.compression = 34712}) == (transform ? decoded.data : converted(decoded)));
    }
  }
  for (const int dx : {2, 3}) {
    const Bytes tile = encode_jpeg2000(picture, {.irreversible = false, .colour_transform = false, .chroma_dx = dx});
    const Picture repeated = with_repeated_columns(picture, dx);
    CHECK(read(tile, {.compression = 33003}) == converted(repeated));
    CHECK(read(tile, {.compression = 33005, .photometric = rgb_photometric}) == converted(repeated));
  }
  const Bytes wrapped = encode_jpeg2000(picture, {.irreversible = false, .jp2 = true});
  CHECK(read(wrapped, {.compression = 34712, .photometric = rgb_photometric}) == picture.data);
  const Bytes tiled = encode_jpeg2000(picture, {.irreversible = false, .tile_size = 20});
  CHECK(read(tiled, {.compression = 33005, .photometric = rgb_photometric}) == picture.data);
}

TEST_CASE("JPEG 2000: grey, inverted grey, extra samples, and damage") {
  const Picture grey = make_picture(64, 48, 1, 12);
  const Bytes tile = encode_jpeg2000(grey, {.irreversible = false});
  CHECK(read(tile, {.compression = 34712, .photometric = grey_photometric, .samples = 1}) == rgb_of(grey));
  CHECK(read(tile, {.compression = 33005, .photometric = rgb_photometric}) == rgb_of(grey));
  CHECK(read(tile, {.compression = 33003}) == rgb_of(grey));
  CHECK(read(tile, {.compression = 34712, .photometric = white_is_zero, .samples = 1}) == inverted(rgb_of(grey)));
  const Picture four = make_picture(64, 48, 4, 13);
  for (const bool transform : {false, true}) {
    const Bytes with_alpha = encode_jpeg2000(four, {.irreversible = false, .colour_transform = transform});
    CHECK(read(with_alpha, {.compression = 34712, .photometric = rgb_photometric, .samples = 4}) == rgb_of(four));
  }
  const Picture three = make_picture(64, 48, 3, 14);
  const Layout layout{.compression = 33003};
  CHECK(error_of(encode_jpeg2000(three, {.precision = 12}), layout).find("12 bits") != std::string::npos);
  const Bytes sound = encode_jpeg2000(three);
  for (std::size_t length = 1; length + 2 < sound.size(); length += 1 + length / 10) {
    CHECK_FALSE(error_of(Bytes(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(length)), layout).empty());
  }
}

TEST_CASE("without compression: colour, grey, inverted grey, extra samples") {
  for (int samples = 1; samples <= 4; ++samples) {
    const Picture picture = make_picture(64, 48, samples, 15);
    const std::uint64_t photometric = samples < 3 ? grey_photometric : rgb_photometric;
    CHECK(read(to_bytes(picture), {.compression = 1, .photometric = photometric, .samples = samples}) ==
          rgb_of(picture));
    if (samples > 2) continue;
    CHECK(read(to_bytes(picture), {.compression = 1, .photometric = white_is_zero, .samples = samples}) ==
          inverted(rgb_of(picture)));
  }
}

TEST_CASE("a view is luminance or RGB of 8 bits, and readers take their own") {
  const OneTile file(encode_jpeg(make_picture(64, 48, 3, 16)), {});
  const Slide& slide = *file.slide;
  Pixels out(64 * 48 * 8);
  CHECK_THROWS_AS(read_rgb(slide, 0, 0, 0, {out.data(), 64, 64, 48}), std::invalid_argument);
  CHECK_THROWS_AS(read_luminance(slide, 0, 0, 0, {out.data(), 192, 64, 48, rgb_format}), std::invalid_argument);
  CHECK_THROWS_AS(read_rgb(slide, 0, 1, 0, {out.data(), 192, 64, 48, rgb_format}), std::invalid_argument);
  const std::vector<std::byte> bytes(10);
  for (const PixelFormat format : {PixelFormat{SampleType::uint16, 1}, PixelFormat{SampleType::uint8, 4}}) {
    CHECK_THROWS_AS(TileDecoder().decode(slide, 0, 0, bytes, 0, 0, {out.data(), 512, 64, 48, format}),
                    std::invalid_argument);
  }
}
