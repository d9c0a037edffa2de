#include <doctest/doctest.h>
#include <sys/resource.h>
#include <tiffio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <new>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <thread>

#include "slide/test_images.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

struct Layout {
  int width = 70;
  int height = 50;
  int tile = 32;  ///< side; 0: strips of 16 rows
  std::uint16_t compression = COMPRESSION_NONE;
  std::uint16_t photometric = PHOTOMETRIC_RGB;
  std::uint16_t predictor = 1;
  int channels = 0;    ///< samples behind the colour's that ExtraSamples calls unspecified
  bool apart = false;  ///< each sample has tiles of its own
};

/// Writes a picture with libtiff.
std::filesystem::path write_tiff(const TemporaryFolder& folder, const Picture& picture, const Layout& layout) {
  const std::filesystem::path path = folder.path() / "libtiff.tif";
  TIFFSetWarningHandler(nullptr);  // it has an opinion on the older Deflate
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  REQUIRE(tiff != nullptr);
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, picture.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, picture.height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, picture.samples);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, layout.apart ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, layout.photometric);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, layout.compression);
  const std::vector<std::uint16_t> extra(static_cast<std::size_t>(layout.channels), EXTRASAMPLE_UNSPECIFIED);
  if (!extra.empty()) TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, layout.channels, extra.data());
  if (layout.predictor != 1) TIFFSetField(tiff, TIFFTAG_PREDICTOR, layout.predictor);
  if (layout.compression == COMPRESSION_WEBP) TIFFSetField(tiff, TIFFTAG_WEBP_LOSSLESS, 1);
  const int tile_height = layout.tile > 0 ? layout.tile : 16;
  const int tile_width = layout.tile > 0 ? layout.tile : picture.width;
  if (layout.tile > 0) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, tile_width);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, tile_height);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, tile_height);
  }
  std::uint32_t index = 0;
  const int planes = layout.apart ? picture.samples : 1;
  for (int plane = 0; plane < planes; ++plane) {
    for (int y = 0; y < picture.height; y += tile_height) {
      for (int x = 0; x < picture.width; x += tile_width) {
        const int rows = layout.tile > 0 ? tile_height : std::min(tile_height, picture.height - y);
        Picture part = cut(picture, x, y, tile_width, rows);
        if (layout.apart) part = {tile_width, rows, 1, sample(part, plane)};
        const auto size = static_cast<tmsize_t>(part.data.size());
        const tmsize_t done = layout.tile > 0 ? TIFFWriteEncodedTile(tiff, index, part.data.data(), size)
                                              : TIFFWriteEncodedStrip(tiff, index, part.data.data(), size);
        REQUIRE(done == size);
        ++index;
      }
    }
  }
  TIFFClose(tiff);
  return path;
}

constexpr std::array<std::pair<std::uint16_t, Codec>, 8> codecs{{{COMPRESSION_NONE, Codec::none},
                                                                 {COMPRESSION_LZW, Codec::lzw},
                                                                 {COMPRESSION_ADOBE_DEFLATE, Codec::deflate},
                                                                 {COMPRESSION_DEFLATE, Codec::deflate},
                                                                 {COMPRESSION_PACKBITS, Codec::packbits},
                                                                 {COMPRESSION_LZMA, Codec::lzma},
                                                                 {COMPRESSION_ZSTD, Codec::zstd},
                                                                 {COMPRESSION_LERC, Codec::lerc}}};

}  // namespace

TEST_CASE("every lossless codec gives the formula's values, in tiles and strips") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(70, 50, 3, 1);
  for (const auto& [compression, codec] : codecs) {
    if (TIFFIsCODECConfigured(compression) != 1) continue;
    for (const int tile : {32, 0}) {
      const auto slide = Slide::open(write_tiff(folder, picture, {.tile = tile, .compression = compression}));
      CHECK(slide->info().levels[0].codec == codec);
      CHECK(slide->info().levels[0].tiled == (tile > 0));
      CHECK(read_level(*slide) == formula(picture));
      CHECK(read_level_rgb(*slide) == picture.data);
    }
  }
}

TEST_CASE("WebP") {
  if (TIFFIsCODECConfigured(COMPRESSION_WEBP) != 1) {
    report_skipped("libtiff was built without WebP");
    return;
  }
  const TemporaryFolder folder;
  for (const int samples : {3, 4}) {
    Picture picture = make_picture(70, 50, samples, 2);
    // Colours of transparent pixels aren't kept.
    if (samples == 4) {
      for (std::size_t i = 3; i < picture.data.size(); i += 4) picture.data[i] = 255;
    }
    const auto slide = Slide::open(write_tiff(folder, picture, {.compression = COMPRESSION_WEBP}));
    CHECK(slide->info().levels[0].codec == Codec::webp);
    CHECK(read_level(*slide) == formula(picture));
    CHECK(read_level_rgb(*slide) == rgb_of(picture));
  }
}

TEST_CASE("WebP of four components where SamplesPerPixel says 3: three colours, or a bad tile by libtiff") {
  if (TIFFIsCODECConfigured(COMPRESSION_WEBP) != 1) {
    report_skipped("libtiff was built without WebP");
    return;
  }
  const TemporaryFolder folder;
  Picture picture = make_picture(32, 32, 4, 2);
  // Opaque pixels alone would be coded without alpha, and colours of transparent ones aren't kept.
  for (std::size_t i = 3; i < picture.data.size(); i += 4) picture.data[i] = i % 8 == 3 ? 128 : 255;
  const auto written =
      Slide::open(write_tiff(folder, picture, {.width = 32, .height = 32, .compression = COMPRESSION_WEBP}));
  CHECK(read_level_rgb(*written) == rgb_of(picture));
  const TileRange range = written->tile(0, 0);
  Bytes tile(range.length);
  written->read(range.offset, tile);
  TestTiff tiff;
  tiff.directories = {tiled_directory(32, 32, 32, 32, 3)};
  tiff.directories[0].set_short(259, COMPRESSION_WEBP).set_short(262, PHOTOMETRIC_RGB).tiles = {tile};
  const auto path = folder.write("three.tif", tiff.bytes());
  const std::string error = read_error(path);
  CAPTURE(error);
  if (error.empty()) {
    CHECK(read_level_rgb(*Slide::open(path)) == rgb_of(picture));
  } else {
    CHECK(error.find("libtiff: ") != std::string::npos);
  }
}

TEST_CASE("predictors are libtiff's matter") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(70, 50, 3, 3);
  for (const auto compression : std::array<std::uint16_t, 2>{COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE}) {
    for (const int tile : {32, 0}) {
      const Layout layout{.tile = tile, .compression = compression, .predictor = PREDICTOR_HORIZONTAL};
      CHECK(read_level(*Slide::open(write_tiff(folder, picture, layout))) == formula(picture));
    }
  }
}

TEST_CASE("grey, inverted grey, and extra samples") {
  const TemporaryFolder folder;
  for (const auto compression : std::array<std::uint16_t, 2>{COMPRESSION_NONE, COMPRESSION_LZW}) {
    for (const int samples : {1, 2}) {
      const Picture picture = make_picture(70, 50, samples, 4);
      Layout layout{.compression = compression, .photometric = PHOTOMETRIC_MINISBLACK};
      CHECK(read_level(*Slide::open(write_tiff(folder, picture, layout))) == sample(picture, 0));
      layout.photometric = PHOTOMETRIC_MINISWHITE;
      std::vector<std::uint8_t> inverted = sample(picture, 0);
      for (std::uint8_t& v : inverted) v = static_cast<std::uint8_t>(255 - v);
      const auto slide = Slide::open(write_tiff(folder, picture, layout));
      CHECK(slide->info().levels[0].colour == Colour::grey_inverted);
      CHECK(read_level(*slide) == inverted);
      CHECK(read_level_rgb(*slide) == rgb_of({70, 50, 1, inverted}));
    }
    const Picture picture = make_picture(70, 50, 4, 5);
    CHECK(read_level(*Slide::open(write_tiff(folder, picture, {.compression = compression}))) == formula(picture));
  }
}

TEST_CASE("one of several channels is read as grey") {
  const TemporaryFolder folder;
  for (const auto compression : std::array<std::uint16_t, 2>{COMPRESSION_NONE, COMPRESSION_LZW}) {
    for (const int samples : {2, 4, 5}) {
      const Picture picture = make_picture(70, 50, samples, 4);
      for (const auto photometric : std::array<std::uint16_t, 2>{PHOTOMETRIC_MINISBLACK, PHOTOMETRIC_RGB}) {
        const int extra = samples - (photometric == PHOTOMETRIC_RGB ? 3 : 1);
        if (extra < 1) continue;
        const auto path =
            write_tiff(folder, picture, {.compression = compression, .photometric = photometric, .channels = extra});
        CHECK(open_error(path).find("has " + std::to_string(samples) + " channels") != std::string::npos);
        for (int channel = 0; channel < samples; ++channel) {
          const auto slide = Slide::open(path, {.channel = channel});
          CHECK(slide->info().levels[0].colour == Colour::grey);
          CHECK(slide->info().channels.size() == static_cast<std::size_t>(samples));
          CHECK(read_level(*slide) == sample(picture, channel));
          CHECK(read_level_rgb(*slide) == rgb_of({70, 50, 1, sample(picture, channel)}));
        }
      }
    }
  }
}

TEST_CASE("samples that lie apart are read as those side by side (long)") {
  const TemporaryFolder folder;
  for (const int samples : {3, 4}) {
    const Picture picture = make_picture(70, 50, samples, 10);
    for (const auto& entry : codecs) {
      const std::uint16_t compression = entry.first;
      const Codec codec = entry.second;
      if (TIFFIsCODECConfigured(compression) != 1) continue;
      const bool predicts = codec == Codec::lzw || codec == Codec::deflate || codec == Codec::zstd;
      for (const int tile : {32, 0}) {
        for (std::uint16_t predictor = 1; predictor <= (predicts ? 2 : 1); ++predictor) {
          CAPTURE(name(codec));
          CAPTURE(tile);
          CAPTURE(predictor);
          Layout layout{.tile = tile, .compression = compression, .predictor = predictor};
          const auto twin = Slide::open(write_tiff(folder, picture, layout));
          const auto luminance = read_level(*twin);
          layout.apart = true;
          const auto slide = Slide::open(write_tiff(folder, picture, layout));
          CHECK(twin->info().levels[0].codec == codec);
          CHECK(slide->info().levels[0].codec == Codec::planes);
          CHECK(slide->info().levels[0].colour == Colour::rgb);
          CHECK(slide->info().levels[0].tiled == (tile > 0));
          CHECK(read_level_rgb(*slide) == rgb_of(picture));
          CHECK(read_level(*slide) == luminance);
        }
      }
    }
  }
}

TEST_CASE("a sample that lies apart is read alone, where it is grey or a channel") {
  const TemporaryFolder folder;
  for (const auto compression : std::array<std::uint16_t, 3>{COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_LERC}) {
    if (TIFFIsCODECConfigured(compression) != 1) continue;
    for (const int tile : {32, 0}) {
      Layout layout{.tile = tile, .compression = compression, .photometric = PHOTOMETRIC_MINISBLACK, .apart = true};
      const Picture with_alpha = make_picture(70, 50, 2, 11);
      const auto grey = Slide::open(write_tiff(folder, with_alpha, layout));
      CHECK(grey->info().levels[0].colour == Colour::grey);
      CHECK(grey->info().levels[0].codec != Codec::planes);
      CHECK(read_level(*grey) == sample(with_alpha, 0));
      for (const auto photometric : std::array<std::uint16_t, 2>{PHOTOMETRIC_MINISBLACK, PHOTOMETRIC_RGB}) {
        const Picture picture = make_picture(70, 50, 5, 12);
        layout.photometric = photometric;
        layout.channels = photometric == PHOTOMETRIC_RGB ? 2 : 4;
        const auto path = write_tiff(folder, picture, layout);
        CHECK(open_error(path).find("has 5 channels") != std::string::npos);
        for (int channel = 0; channel < 5; ++channel) {
          const auto slide = Slide::open(path, {.channel = channel});
          CHECK(slide->info().channels.size() == 5);
          CHECK(read_level(*slide) == sample(picture, channel));
        }
        CHECK(open_error(path, {.channel = 5}).find("input.channel is 5") != std::string::npos);
      }
    }
  }
}

TEST_CASE("tile sizes needn't be multiples of 16") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(30, 21, 3, 6);
  TestTiff tiff;
  tiff.directories.push_back(tiled_directory(30, 21, 20, 10, 3));
  for (int y = 0; y < 21; y += 10) {
    for (int x = 0; x < 30; x += 20) tiff.directories[0].tiles.push_back(to_bytes(cut(picture, x, y, 20, 10)));
  }
  for (const bool big_endian : {false, true}) {
    tiff.big_endian = big_endian;
    CHECK(read_level(*Slide::open(folder.write("odd.tif", tiff.bytes()))) == formula(picture));
  }
}

TEST_CASE("too few samples make a tile bad, but for those beyond the lower edge") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(32, 20, 3, 7);
  TestTiff tiff;
  tiff.directories.push_back(tiled_directory(32, 20, 16, 16, 3));
  TestDirectory& directory = tiff.directories[0];
  for (int y = 0; y < 20; y += 16) {
    for (int x = 0; x < 32; x += 16) directory.tiles.push_back(to_bytes(cut(picture, x, y, 16, 16)));
  }
  directory.tiles[3].resize(16 * 4 * 3);
  CHECK(read_level(*Slide::open(folder.write("edge.tif", tiff.bytes()))) == formula(picture));
  directory.tiles[3].resize(16 * 4 * 3 - 1);
  CHECK(read_error(folder.write("edge.tif", tiff.bytes())).find("tile 3 (column 1, row 1): 191 bytes of samples") !=
        std::string::npos);
  directory.tiles[0].resize(16 * 16 * 3 - 1);
  CHECK(read_error(folder.write("edge.tif", tiff.bytes())).find("767 bytes of samples, expected 768") !=
        std::string::npos);
}

TEST_CASE("damaged data are bad, with libtiff's reason, and the next tile is fine") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(64, 32, 3, 8);
  for (const auto& entry : codecs) {
    const std::uint16_t compression = entry.first;
    const Codec codec = entry.second;
    if (codec == Codec::none || TIFFIsCODECConfigured(compression) != 1) continue;
    const auto slide = Slide::open(write_tiff(folder, picture, {.compression = compression}));
    TileDecoder decoder;
    std::vector<std::uint8_t> out(32 * 32);
    const HostPixels view{out.data(), 32, 32, 32};
    Bytes bytes(slide->tile(0, 0).length);
    slide->read(slide->tile(0, 0).offset, bytes);
    CAPTURE(name(codec));
    CHECK_THROWS_AS(decoder.decode(*slide, 0, 0, std::span(bytes).first(bytes.size() / 2), 0, 0, view), TileError);
    CHECK_THROWS_AS(decoder.decode(*slide, 0, 0, std::span(bytes).first(1), 0, 0, view), TileError);
    decoder.decode(*slide, 0, 0, bytes, 0, 0, view);
    CHECK(out == formula(cut(picture, 0, 0, 32, 32)));
  }
}

TEST_CASE("LERC of the first kind is refused before liblerc takes memory for the pixels that it claims") {
  if (TIFFIsCODECConfigured(COMPRESSION_LERC) != 1) {
    report_skipped("libtiff was built without LERC");
    return;
  }
  // Its version and type, 20,000 x 20,000 pixels, no error, and parts of one value each: liblerc would take 3 GiB.
  Bytes blob;
  const auto add = [](Bytes& to, std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  for (const char c : std::string("CntZImage ")) blob.push_back(static_cast<std::byte>(c));
  for (const std::uint32_t number :
       {11U, 8U, 20000U, 20000U, 0U, 0U, 0U, 0U, 0U, 0x3F800000U, 1U, 1U, 1U, 0x3F800000U}) {
    add(blob, number, 4);
  }
  blob.resize(blob.size() + 65);
  // Stored as they are, in a stream of Deflate and in a frame of Zstandard.
  Bytes deflated;
  add(deflated, 0x010178, 3);
  add(deflated, blob.size(), 2);
  add(deflated, ~blob.size(), 2);
  Bytes frame;
  add(frame, 0xFD2FB528, 4);
  add(frame, 0x20 | blob.size() << 8, 2);
  add(frame, 1 | blob.size() << 3, 3);
  for (Bytes* packed : {&deflated, &frame}) packed->insert(packed->end(), blob.begin(), blob.end());
  const TemporaryFolder folder;
  std::uint64_t packing = 0;
  for (const Bytes& tile : {blob, deflated, frame}) {
    CAPTURE(packing);
    TestTiff tiff;
    tiff.directories.push_back(tiled_directory(64, 64, 64, 64, 1));
    tiff.directories[0].set_short(TIFFTAG_COMPRESSION, COMPRESSION_LERC);
    tiff.directories[0].set(TIFFTAG_LERC_PARAMETERS, long_, {4, packing++});
    tiff.directories[0].tiles = {tile};
    CHECK(read_error(folder.write("lerc.tif", tiff.bytes())).find("isn't LERC of the second kind") !=
          std::string::npos);
  }
}

#ifndef SLIDESTREAM_SANITIZED  // Sanitizers need address space of their own.
TEST_CASE("a tile that lacks memory to be decoded isn't bad") {
  if (TIFFIsCODECConfigured(COMPRESSION_ZSTD) != 1) {
    report_skipped("libtiff was built without Zstandard");
    return;
  }
  // A frame (RFC 8878) whose decoder needs a window of 128 MiB: 65536 times the value 100.
  Bytes frame;
  for (const int value : {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x88, 0x03, 0x00, 0x08, 100}) {
    frame.push_back(static_cast<std::byte>(value));
  }
  const TemporaryFolder folder;
  TestTiff tiff;
  tiff.directories.push_back(tiled_directory(256, 256, 256, 256, 1));
  tiff.directories[0].set_short(TIFFTAG_COMPRESSION, COMPRESSION_ZSTD);
  tiff.directories[0].tiles = {frame};
  const auto slide = Slide::open(folder.write("window.tif", tiff.bytes()));
  std::vector<std::uint8_t> pixels(256 * 256);
  const HostPixels out{pixels.data(), 256, 256, 256};

  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit tight = before;
  tight.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + (std::size_t{64} << 20);
  REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
  CHECK_THROWS_AS(read_luminance(*slide, 0, 0, 0, out, BadTilePolicy::white), std::bad_alloc);
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  read_luminance(*slide, 0, 0, 0, out, BadTilePolicy::white);
  CHECK(pixels == std::vector<std::uint8_t>(256 * 256, 100));

  // Damage is still damage: no such block.
  tiff.directories[0].tiles[0][6] = std::byte{0x07};
  read_luminance(*Slide::open(folder.write("damaged.tif", tiff.bytes())), 0, 0, 0, out, BadTilePolicy::white);
  CHECK(pixels == std::vector<std::uint8_t>(256 * 256, 255));
}
#endif

TEST_CASE("libtiff's reasons are one line without the path, whatever the file is called") {
  const TemporaryFolder folder;
  for (const auto& entry : codecs) {
    const std::uint16_t compression = entry.first;
    if (entry.second == Codec::none || TIFFIsCODECConfigured(compression) != 1) continue;
    const auto path = folder.path() / "two\nlines\x1b.tif";
    const auto plain = write_tiff(folder, make_picture(64, 32, 3, 8), {.compression = compression});
    std::filesystem::rename(plain, path);
    const auto slide = Slide::open(path);
    TileDecoder decoder;
    std::vector<std::uint8_t> out(32 * 32);
    CAPTURE(name(entry.second));
    for (const std::byte value : {std::byte{0}, std::byte{0x5A}, std::byte{0xFF}}) {
      try {
        decoder.decode(*slide, 0, 0, Bytes(100, value), 0, 0, {out.data(), 32, 32, 32});
        FAIL("damage was decoded");
      } catch (const TileError& error) {
        const std::string text = error.what();
        CAPTURE(text);
        CHECK(text.starts_with(entry.second == Codec::lerc ? "isn't LERC" : "libtiff: "));
        CHECK(text.find("lines") == std::string::npos);
        CHECK(std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }));
      }
    }
  }
}

TEST_CASE("streams of Deflate that are longer than their tile or strip show nothing but what they hold") {
  if (TIFFIsCODECConfigured(COMPRESSION_ADOBE_DEFLATE) != 1) return;
  const TemporaryFolder folder;
  // Bytes as they are, in blocks of these lengths.
  const auto stored = [](std::initializer_list<std::size_t> lengths, std::byte value) {
    Bytes stream = {std::byte{0x78}, std::byte{0x01}};
    std::uint32_t low = 1;
    std::uint32_t high = 0;
    for (const std::size_t& length : lengths) {
      stream.push_back(std::byte{&length == lengths.end() - 1});
      for (const std::size_t number : {length, ~length}) {
        stream.push_back(static_cast<std::byte>(number));
        stream.push_back(static_cast<std::byte>(number >> 8));
      }
      stream.insert(stream.end(), length, value);
      for (std::size_t i = 0; i < length; ++i) {
        low = (low + std::to_integer<std::uint32_t>(value)) % 65521;
        high = (high + low) % 65521;
      }
    }
    for (const std::uint32_t half : {high, low}) {
      stream.push_back(static_cast<std::byte>(half >> 8));
      stream.push_back(static_cast<std::byte>(half));
    }
    return stream;
  };
  for (const int tile : {32, 0}) {
    for (const int predictor : {1, 2}) {
      CAPTURE(tile);
      CAPTURE(predictor);
      const auto slide = Slide::open(write_tiff(folder, make_picture(32, tile > 0 ? 64 : 24, 1, 8),
                                                {.tile = tile,
                                                 .compression = COMPRESSION_ADOBE_DEFLATE,
                                                 .photometric = PHOTOMETRIC_MINISBLACK,
                                                 .predictor = static_cast<std::uint16_t>(predictor)}));
      const int rows = tile > 0 ? 32 : 8;
      std::vector<std::uint8_t> out(static_cast<std::size_t>(32 * rows));
      const HostPixels pixels{out.data(), 32, 32, rows};
      TileDecoder decoder;
      const auto decode = [&](const Bytes& bytes) {
        decoder.decode(*slide, 0, 1, bytes, 0, 0, pixels);
        return std::pair(out[0], out.back());
      };
      const std::uint8_t last = predictor == 2 ? 32 * 3 : 3;
      CHECK(decode(stored({out.size()}, std::byte{9})).first == 9);
      CHECK(decode(stored({65535}, std::byte{3})) == std::pair(std::uint8_t{3}, last));
      CHECK(decode(stored({out.size() - 100, 300}, std::byte{3})) == std::pair(std::uint8_t{3}, last));
      // What looks like nothing is read twice.
      CHECK(decode(stored({out.size()}, std::byte{0xA5})).first == 0xA5);
      CHECK_THROWS_AS(decode(stored({out.size() - 1}, std::byte{3})), TileError);
    }
  }
}

TEST_CASE("many threads share one slide") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(300, 200, 3, 9);
  const std::vector<std::uint8_t> expected = formula(picture);
  const auto slide = Slide::open(write_tiff(folder, picture, {.compression = COMPRESSION_LZW}));
  std::vector<int> equal(8);
  {
    std::vector<std::jthread> threads;
    for (int& result : equal) {
      threads.emplace_back([&] {
        for (int i = 0; i < 5; ++i) result += read_level(*slide) == expected ? 1 : 0;
      });
    }
  }
  CHECK(equal == std::vector<int>(8, 5));
}
