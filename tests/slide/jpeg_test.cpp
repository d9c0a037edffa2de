#include <doctest/doctest.h>

#include <algorithm>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Coding = JpegOptions::Coding;

constexpr std::uint64_t grey_photometric = 1, white_is_zero = 0, rgb_photometric = 2, ycbcr_photometric = 6;

/// A slide of one JPEG tile.
class OneTile {
 public:
  OneTile(const Bytes& tile, std::uint64_t photometric, int samples, std::uint32_t width = 64,
          std::uint32_t height = 48) {
    tiff.directories.push_back(tiled_directory(width, height, 64, 48, samples));
    tiff.directories[0].set_short(259, 7).set_short(262, photometric);
    tiff.directories[0].tiles = {tile};
  }

  std::filesystem::path write() const { return folder.write("slide.svs", tiff.bytes()); }
  std::vector<std::uint8_t> read() const { return read_level(*Slide::open(write())); }
  std::string error() const { return read_error(write()); }

  TemporaryFolder folder;
  TestTiff tiff;
};

std::size_t find_marker(const Bytes& jpeg, unsigned marker, std::size_t from = 0) {
  for (std::size_t i = from; i + 1 < jpeg.size(); ++i) {
    if (jpeg[i] == std::byte{0xFF} && jpeg[i + 1] == static_cast<std::byte>(marker)) return i;
  }
  FAIL("no such marker");
  return 0;
}

void check_damaged(const Bytes& tile, int samples = 3) {
  const OneTile slide(tile, samples == 1 ? grey_photometric : ycbcr_photometric, samples);
  const std::string error = slide.error();
  CAPTURE(error);
  CHECK(error.find("level 0 tile 0 (column 0, row 0): ") != std::string::npos);
  CHECK(error.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("luminance of YCbCr JPEG is libjpeg-turbo's grey output, whatever its sampling and coding") {
  const Picture picture = make_picture(64, 48, 3, 1);
  for (const auto& factors : {std::pair(1, 1), {2, 1}, {2, 2}, {1, 2}, {4, 1}}) {
    const int h = factors.first, v = factors.second;
    for (const bool progressive : {false, true}) {
      for (const bool arithmetic : {false, true}) {
        for (const int restart : {0, 3}) {
          INFO("sampling ", h, " x ", v, ", progressive ", progressive, ", arithmetic ", arithmetic, ", restart ",
               restart);
          const Bytes tile = encode_jpeg(picture, {.horizontal = h,
                                                   .vertical = v,
                                                   .restart_interval = restart,
                                                   .progressive = progressive,
                                                   .arithmetic = arithmetic});
          CHECK(OneTile(tile, ycbcr_photometric, 3).read() == decode_jpeg_grey(tile).data);
        }
      }
    }
  }
}

TEST_CASE("Aperio's RGB JPEG: photometric says what the components are, where nothing else does") {
  const Picture picture = make_picture(64, 48, 3, 2);
  SUBCASE("RGB without an Adobe marker and with a bogus YCbCrSubSampling") {
    const Bytes tile = encode_jpeg(picture, {.coding = Coding::rgb});
    OneTile slide(tile, rgb_photometric, 3);
    slide.tiff.directories[0].set(530, short_, {2, 2});
    CHECK(slide.read() == formula(decode_jpeg_components(tile)));
  }
  SUBCASE("components that may be anything") {
    const Bytes tile = encode_jpeg(picture, {.coding = Coding::unknown});
    CHECK(OneTile(tile, rgb_photometric, 3).read() == formula(decode_jpeg_components(tile)));
    CHECK(OneTile(tile, ycbcr_photometric, 3).read() == decode_jpeg_grey(tile).data);
  }
  SUBCASE("components named and quantised as YCbCr are YCbCr") {
    const Bytes tile = encode_jpeg(picture, {.horizontal = 1, .vertical = 1});
    CHECK(OneTile(tile, rgb_photometric, 3).read() == decode_jpeg_grey(tile).data);
  }
}

TEST_CASE("a one-component tile gives its samples, whatever the slide's colour") {
  const Bytes tile = encode_jpeg(make_picture(64, 48, 1, 3), {.coding = Coding::grey});
  const std::vector<std::uint8_t> expected = decode_jpeg_grey(tile).data;
  CHECK(OneTile(tile, grey_photometric, 1).read() == expected);
  CHECK(OneTile(tile, rgb_photometric, 3).read() == expected);
  CHECK(OneTile(tile, ycbcr_photometric, 3).read() == expected);
  std::vector<std::uint8_t> inverted = expected;
  for (std::uint8_t& v : inverted) v = static_cast<std::uint8_t>(255 - v);
  CHECK(OneTile(tile, white_is_zero, 1).read() == inverted);
}

TEST_CASE("extra components are ignored, components that don't fit are bad") {
  const Bytes four = encode_jpeg(make_picture(64, 48, 4, 4), {.coding = Coding::unknown});
  const Picture components = decode_jpeg_components(four);
  CHECK(OneTile(four, rgb_photometric, 4).read() == formula(components));
  CHECK(OneTile(four, ycbcr_photometric, 4).read() == sample(components, 0));
  const Bytes two = encode_jpeg(make_picture(64, 48, 2, 5), {.coding = Coding::unknown});
  CHECK(OneTile(two, grey_photometric, 2).read() == sample(decode_jpeg_components(two), 0));
  CHECK(OneTile(two, rgb_photometric, 3).error().find("2 components") != std::string::npos);
  CHECK(OneTile(four, grey_photometric, 1).error().find("4 components") != std::string::npos);
}

TEST_CASE("JPEGTables") {
  const Picture picture = make_picture(64, 48, 3, 6);
  JpegOptions options{.quality = 60};
  const std::vector<std::uint8_t> expected = decode_jpeg_grey(encode_jpeg(picture, options)).data;
  options.without_tables = true;
  OneTile slide(encode_jpeg(picture, options), ycbcr_photometric, 3);
  TestDirectory& directory = slide.tiff.directories[0];
  const Bytes tables = encode_jpeg_tables(options);

  SUBCASE("shared by the tiles") {
    directory.set_bytes(347, tables);
    CHECK(slide.read() == expected);
  }
  SUBCASE("without EOI") {
    directory.set_bytes(347, Bytes(tables.begin(), tables.end() - 2));
    CHECK(slide.read() == expected);
  }
  SUBCASE("missing: the tile is bad, and gets no other tile's tables") {
    CHECK(slide.error().find("Quantization table") != std::string::npos);
    directory = tiled_directory(128, 48, 64, 48, 3).set_short(259, 7).set_short(262, ycbcr_photometric);
    directory.tiles = {encode_jpeg(picture, {.quality = 60}), encode_jpeg(picture, options)};
    CHECK(slide.error().find("level 0 tile 1 (column 1, row 0): Quantization table") != std::string::npos);
  }
  SUBCASE("too short to hold a table: none") {
    for (const std::size_t length : {1, 2, 4, 22}) {
      Bytes shorter(tables.begin(), tables.begin() + static_cast<std::ptrdiff_t>(length));
      directory.set_bytes(347, shorter);
      CHECK(open_error(slide.write()).empty());
      directory.tiles = {encode_jpeg(picture, {.quality = 60})};
      CHECK(slide.read() == expected);
    }
  }
  SUBCASE("damaged: the slide fails") {
    const auto refused = [&](const Bytes& damaged) {
      directory.set_bytes(347, damaged);
      const std::string error = open_error(slide.write());
      CAPTURE(error);
      CHECK(error.find("JPEGTables is damaged: ") != std::string::npos);
    };
    refused(Bytes(tables.begin(), tables.begin() + 60));  // inside a segment
    Bytes changed = tables;
    changed[1] = std::byte{0};  // SOI
    refused(changed);
    changed = tables;
    changed[find_marker(tables, 0xC4) + 5] = std::byte{0xFF};  // 255 codes of 1 bit
    refused(changed);
    changed[find_marker(tables, 0xC4) + 5] = std::byte{3};  // 3 codes of 1 bit
    refused(changed);
    refused(encode_jpeg(picture, {}));  // an image
  }
  SUBCASE("out of reach: libtiff drops them, the slide fails") {
    directory.set_bytes(347, tables);
    const Bytes sound = slide.tiff.bytes();
    const Bytes tag{std::byte{0x5B}, std::byte{1}, std::byte{7}, std::byte{0}};
    const auto entry = std::search(sound.begin(), sound.end(), tag.begin(), tag.end()) - sound.begin();
    const auto refused = [&](std::ptrdiff_t field, std::uint32_t value, const std::string& count) {
      Bytes damaged = sound;
      for (std::ptrdiff_t i = 0; i < 4; ++i) {
        damaged.at(static_cast<std::size_t>(entry + field + i)) = static_cast<std::byte>(value >> 8 * i & 0xFF);
      }
      const std::string error = open_error(slide.folder.write("slide.svs", damaged));
      CAPTURE(error);
      CHECK(error.find(": JPEGTables of " + count + " bytes ") != std::string::npos);
      CHECK(error.find('\n') == std::string::npos);
    };
    refused(4, 1U << 31, "2147483648");
    refused(4, 0xFFFFFFFF, "4294967295");
    refused(4, 60000, "60000");  // more than the file holds
    refused(8, 0x7FFFFFFF, std::to_string(tables.size()));
    refused(8, static_cast<std::uint32_t>(sound.size() - 30), std::to_string(tables.size()));  // cut by its end
  }
}

TEST_CASE("damaged or incomplete scan data make a tile bad") {
  const Picture picture = make_picture(64, 48, 3, 7);
  SUBCASE("cut anywhere before the last byte of data") {
    for (const bool progressive : {false, true}) {
      const Bytes tile = encode_jpeg(picture, {.progressive = progressive});
      std::size_t fine = 0;
      for (std::size_t length = 1; length + 3 < tile.size(); length += 1 + length / 40) {
        const Bytes part(tile.begin(), tile.begin() + static_cast<std::ptrdiff_t>(length));
        fine += OneTile(part, ycbcr_photometric, 3).error().empty() ? 1 : 0;
      }
      CHECK(fine == 0);
    }
  }
  const Bytes tile = encode_jpeg(picture, {.restart_interval = 2});
  SUBCASE("a lost restart marker") {
    Bytes changed = tile;
    changed[find_marker(tile, 0xD1) + 1] = std::byte{0xD3};
    check_damaged(changed);
  }
  SUBCASE("EOI too early") {
    Bytes changed = encode_jpeg(picture);
    const std::size_t middle = changed.size() * 3 / 4;
    changed[middle] = std::byte{0xFF};
    changed[middle + 1] = std::byte{0xD9};
    check_damaged(changed);
  }
  SUBCASE("data left over before EOI") {
    Bytes changed = encode_jpeg(picture);
    changed.insert(changed.end() - 2, 20, std::byte{0x55});
    check_damaged(changed);
  }
  SUBCASE("no Huffman code") {
    Bytes changed = encode_jpeg(picture);
    const std::size_t scan = find_marker(changed, 0xDA) + 14;
    for (std::size_t i = 0; i < 20; ++i) changed[scan + 2 * i] = std::byte{0xFF}, changed[scan + 2 * i + 1] = {};
    check_damaged(changed);
  }
  SUBCASE("not a JPEG") { check_damaged(Bytes(1000, std::byte{0x41})); }
  SUBCASE("arithmetic data that end without EOI") {
    Bytes changed = encode_jpeg(picture, {.arithmetic = true});
    changed.resize(changed.size() / 2);
    check_damaged(changed);
  }
  SUBCASE("12 bits") {
    Bytes changed = encode_jpeg(picture);
    changed[find_marker(changed, 0xC0) + 4] = std::byte{12};
    check_damaged(changed);
  }
}

TEST_CASE("a missing EOI and bytes after EOI are fine") {
  const Picture picture = make_picture(64, 48, 3, 8);
  for (const bool progressive : {false, true}) {
    Bytes tile = encode_jpeg(picture, {.progressive = progressive});
    const std::vector<std::uint8_t> expected = decode_jpeg_grey(tile).data;
    Bytes longer = tile;
    longer.insert(longer.end(), 33, std::byte{0x77});
    CHECK(OneTile(longer, ycbcr_photometric, 3).read() == expected);
    tile.resize(tile.size() - 2);
    CHECK(OneTile(tile, ycbcr_photometric, 3).read() == expected);
  }
}

TEST_CASE("a progressive image that lacks scans is bad, also with EOI") {
  const Picture picture = make_picture(64, 48, 3, 21);
  const Bytes whole = encode_jpeg(picture, {.progressive = true});
  std::vector<std::size_t> ends;  // of scans, with the tables before the next one
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    if (whole[i] == std::byte{0xFF} && whole[i + 1] == std::byte{0xDA}) ends.push_back(i);
  }
  REQUIRE(ends.size() == 10);
  // A table before a scan that isn't there harms nothing.
  for (std::size_t scans = 1; scans < ends.size(); ++scans) {
    INFO(scans, " scans");
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(ends[scans]));
    cut.push_back(std::byte{0xFF});
    cut.push_back(std::byte{0xD9});
    check_damaged(cut);
  }
  CHECK(OneTile(whole, ycbcr_photometric, 3).read() == decode_jpeg_grey(whole).data);
}

TEST_CASE("a progressive image of absurdly many scans is bad") {
  const Picture picture = make_picture(64, 48, 1, 9);
  const Bytes tile = encode_jpeg(picture, {.coding = Coding::grey, .progressive = true});
  // The last scan, a refinement, again and again: the progression contradicts itself, and there is a limit anyway.
  std::size_t last = 0;
  for (std::size_t i = 0; i + 1 < tile.size(); ++i) {
    if (tile[i] == std::byte{0xFF} && tile[i + 1] == std::byte{0xDA}) last = i;
  }
  Bytes bomb(tile.begin(), tile.end() - 2);
  for (int i = 0; i < 300; ++i) {
    bomb.insert(bomb.end(), tile.begin() + static_cast<std::ptrdiff_t>(last), tile.end() - 2);
  }
  check_damaged(bomb, 1);
}

TEST_CASE("tiles have the tile's size, at the edge at least the part inside") {
  const Picture picture = make_picture(96, 96, 3, 10);
  const auto tile = [&](int x, int y, int width, int height) {
    return encode_jpeg(cut(picture, x, y, width, height), {.horizontal = 1, .vertical = 1});
  };
  // 90 x 70 pixels: four tiles of 64 x 48.
  TestTiff tiff;
  tiff.directories.push_back(tiled_directory(90, 70, 64, 48, 3).set_short(259, 7).set_short(262, ycbcr_photometric));
  const TemporaryFolder folder;
  const auto read_with = [&](const std::vector<Bytes>& tiles) {
    tiff.directories[0].tiles = tiles;
    return folder.write("slide.svs", tiff.bytes());
  };
  const Bytes a = tile(0, 0, 64, 48);
  const auto full =
      read_level(*Slide::open(read_with({a, tile(64, 0, 64, 48), tile(0, 48, 64, 48), tile(64, 48, 64, 48)})));
  // The same picture in tiles cut to what lies inside: equal but for the padding's influence on the last blocks.
  const auto cropped =
      read_level(*Slide::open(read_with({a, tile(64, 0, 26, 48), tile(0, 48, 64, 22), tile(64, 48, 26, 22)})));
  for (int y = 0; y < 48; ++y) CHECK(std::equal(&full[y * 90], &full[y * 90 + 64 + 24], &cropped[y * 90]));
  CHECK(read_error(read_with({tile(0, 0, 56, 48), a, a, a})).find("tile 0 (column 0, row 0): decodes to 56 x 48") !=
        std::string::npos);
  CHECK(read_error(read_with({a, tile(64, 0, 25, 48), a, a})).find("tile 1") != std::string::npos);
  CHECK(read_error(read_with({a, tile(64, 0, 26, 47), a, a})).find("tile 1") != std::string::npos);
  CHECK(read_error(read_with({a, a, tile(0, 48, 63, 48), a})).find("tile 2") != std::string::npos);
  CHECK(read_error(read_with({a, a, a, tile(0, 0, 72, 48)})).find("tile 3") != std::string::npos);
}

TEST_CASE("any part of a tile is the same part of the whole, and nothing else is written") {
  for (const auto& [coding, photometric] :
       {std::pair(Coding::ycbcr, ycbcr_photometric), {Coding::rgb, rgb_photometric}}) {
    const Bytes tile = encode_jpeg(make_picture(64, 48, 3, 11), {.coding = coding});
    const OneTile file(tile, photometric, 3);
    const auto slide = Slide::open(file.write());
    const std::vector<std::uint8_t> whole = read_level(*slide);
    TileDecoder decoder;
    for (const auto& [x, y, width, height] :
         {std::tuple(0, 0, 64, 48), {0, 7, 64, 9}, {5, 0, 59, 48}, {0, 0, 63, 1}, {63, 47, 1, 1}}) {
      std::vector<std::uint8_t> out(70 * 50, 99);
      decoder.decode(*slide, 0, 0, tile, x, y, {out.data(), 70, width, height});
      for (int row = 0; row < 50; ++row) {
        for (int column = 0; column < 70; ++column) {
          const bool inside = row < height && column < width;
          REQUIRE(out[row * 70 + column] == (inside ? whole[(y + row) * 64 + x + column] : 99));
        }
      }
    }
    std::vector<std::uint8_t> out(64 * 48);
    CHECK_THROWS_AS(decoder.decode(*slide, 0, 0, tile, 1, 0, {out.data(), 64, 64, 48}), std::invalid_argument);
    CHECK_THROWS_AS(decoder.decode(*slide, 0, 1, tile, 0, 0, {out.data(), 64, 64, 48}), std::out_of_range);
    CHECK_THROWS_AS(decoder.decode(*slide, 0, 0, {}, 0, 0, {out.data(), 64, 64, 48}), TileError);
  }
}

TEST_CASE("JPEG strips, the last one shorter") {
  const Picture picture = make_picture(50, 40, 3, 12);
  TestTiff tiff;
  tiff.directories.push_back(stripped_directory(50, 40, 16, 3).set_short(259, 7).set_short(262, ycbcr_photometric));
  std::vector<std::uint8_t> expected;
  for (const auto& [y, rows] : {std::pair(0, 16), {16, 16}, {32, 8}}) {
    const Bytes strip = encode_jpeg(cut(picture, 0, y, 50, rows));
    const Picture grey = decode_jpeg_grey(strip);
    expected.insert(expected.end(), grey.data.begin(), grey.data.end());
    tiff.directories[0].tiles.push_back(strip);
  }
  const TemporaryFolder folder;
  CHECK(read_level(*Slide::open(folder.write("strips.tif", tiff.bytes()))) == expected);
}
