// What tiles of WebP say before they are decoded: their width, and how many tables of codes they take.
#include "slide/webp_tables.hpp"

#include <doctest/doctest.h>
#include <tiffio.h>

#include <functional>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/decode_memory.hpp"
#include "slide/test_images.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20, of_group = 21 << 10;

/// Writes bits, the lowest of a byte first.
class BitWriter {
 public:
  void put(unsigned value, unsigned count) {
    for (unsigned i = 0; i < count; ++i, ++at_) {
      if (at_ % 8 == 0) bytes.push_back(std::byte{0});
      bytes.back() |= static_cast<std::byte>((value >> i & 1U) << (at_ % 8));
    }
  }
  /// A code whose only symbol is 0.
  void put_single_code() { put(1, 4); }
  /// A code of 256 symbols of 8 bits, the highest bit first.
  void put_full_code(bool has_more_symbols) {
    put(0, 1);
    put(8, 4);  // twelve lengths, of which the last is that of 8
    put(0, 33);
    put(1, 3);
    put(has_more_symbols ? 1 : 0, 1);
    if (!has_more_symbols) return;
    put(3, 3);
    put(254, 8);
  }
  void put_full_symbol(unsigned value) {
    for (int bit = 7; bit >= 0; --bit) put(value >> bit, 1);
  }

  Bytes bytes;

 private:
  std::size_t at_ = 0;
};

/// A black picture whose blocks of 4 x 4 pixels have these groups of codes.
BitWriter blocks_of_groups(unsigned side, unsigned groups, const std::function<unsigned(unsigned)>& group) {
  BitWriter writer;
  writer.put(4, 3);  // no transform, no cache, groups
  writer.put(0, 3);  // blocks of 4 x 4
  writer.put(0, 1);
  writer.put_full_code(true);
  writer.put_full_code(false);
  for (int code = 0; code < 3; ++code) writer.put_single_code();
  for (unsigned block = 0; block < (side / 4) * (side / 4); ++block) {
    writer.put_full_symbol(group(block) & 255);
    writer.put_full_symbol(group(block) >> 8);
  }
  for (unsigned code = 0; code < groups * 5; ++code) writer.put_single_code();
  return writer;
}

void put_text(Bytes& bytes, const std::string& text) {
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
}

void put_number(Bytes& bytes, std::size_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

/// A file of WebP, of one chunk.
Bytes webp_file(const std::string& chunk, const Bytes& content) {
  Bytes file;
  put_text(file, "RIFF");
  put_number(file, content.size() + content.size() % 2 + 12, 4);
  put_text(file, "WEBP" + chunk);
  put_number(file, content.size(), 4);
  file.insert(file.end(), content.begin(), content.end());
  file.resize(file.size() + content.size() % 2);
  return file;
}

Bytes lossless(unsigned width, unsigned height, const BitWriter& stream) {
  Bytes content = {std::byte{0x2F}};
  put_number(content, (width - 1) | (height - 1) << 14, 4);
  content.insert(content.end(), stream.bytes.begin(), stream.bytes.end());
  return webp_file("VP8L", content);
}

Bytes lossless(unsigned side, const BitWriter& stream) { return lossless(side, side, stream); }

TestTiff tiff_of_webp(std::uint32_t side, const Bytes& tile) {
  TestTiff tiff;
  tiff.directories = {tiled_directory(side, side, side, side, 3)};
  tiff.directories[0].set_short(259, COMPRESSION_WEBP).set_short(262, PHOTOMETRIC_RGB).tiles = {tile};
  return tiff;
}

bool has_webp() {
  if (TIFFIsCODECConfigured(COMPRESSION_WEBP) == 1) return true;
  report_skipped("libtiff was built without WebP");
  return false;
}

}  // namespace

TEST_CASE("WebP: a lossless tile takes tables for the groups that it has, and libwebp reads it") {
  const TemporaryFolder folder;
  for (const unsigned groups : {1U, 3U, 256U, 300U}) {
    CAPTURE(groups);
    const Bytes tile = lossless(128, blocks_of_groups(128, groups, [&](unsigned block) { return block % groups; }));
    CHECK(webp_table_bytes(tile) == groups * of_group + 32 * 32 * 4);
    if (TIFFIsCODECConfigured(COMPRESSION_WEBP) != 1) continue;
    const auto slide = Slide::open(folder.write("slide.tif", tiff_of_webp(128, tile).bytes()));
    CHECK(read_level_rgb(*slide) == std::vector<std::uint8_t>(std::size_t{128} * 128 * 3));
  }
}

TEST_CASE("WebP: of numbers above 1,000 those that blocks have count") {
  const auto bytes_of_step = [](unsigned step) {
    return webp_table_bytes(
        lossless(128, blocks_of_groups(128, 20000, [&](unsigned block) { return block % 64 * step; })));
  };
  CHECK(bytes_of_step(15) == (63 * 15 + 1) * of_group + 4096);
  CHECK(bytes_of_step(300) == 64 * of_group + 4096);
}

TEST_CASE("WebP: blocks that say the same without bits are read at once, at any size") {
  // Sixteen million blocks in each of three pictures, which would be read one by one.
  BitWriter writer;
  for (int kind = 0; kind < 2; ++kind) {
    writer.put(1, 1);
    writer.put(static_cast<unsigned>(kind), 2);
    writer.put(0, 4);  // blocks of 4 x 4, no cache
    for (int code = 0; code < 5; ++code) writer.put_single_code();
  }
  writer.put(4, 3);
  writer.put(0, 4);
  for (int code = 0; code < 10; ++code) writer.put_single_code();
  CHECK(webp_table_bytes(lossless(16384, writer)) == of_group + std::uint64_t{3} * 4096 * 4096 * 4);
}

TEST_CASE("WebP: a damaged lossless tile counts as one with all the groups that its blocks and bits may have") {
  const Bytes sound = lossless(1024, blocks_of_groups(1024, 2, [](unsigned block) { return block % 2; }));
  CHECK(webp_table_bytes(sound) == 2 * of_group + 65536 * 4);
  BitWriter five_transforms;
  for (int i = 0; i < 5; ++i) five_transforms.put(5, 3);
  Bytes damaged = lossless(1024, five_transforms);
  damaged.resize(mib);
  CHECK(webp_table_bytes(damaged) == 65536 * of_group + 3 * 65536 * 4);
  damaged.resize(1025);
  CHECK(webp_table_bytes(damaged) == 400 * of_group + 3 * 65536 * 4);
  damaged.resize(22);
  CHECK(webp_table_bytes(damaged) == 0);
}

TEST_CASE("WebP: lossy tiles take no tables, but for lossless alpha") {
  Bytes frame(6);
  put_number(frame, 128, 2);
  put_number(frame, 128, 2);
  const Bytes lossy = webp_file("VP8 ", frame);
  CHECK(webp_table_bytes(lossy) == 0);
  const BitWriter stream = blocks_of_groups(128, 300, [](unsigned block) { return block % 300; });
  for (const int method : {0, 1}) {
    Bytes file = webp_file("VP8X", Bytes(10));
    put_text(file, "ALPH");
    put_number(file, stream.bytes.size() + 1, 4);
    put_number(file, static_cast<std::size_t>(method), 1);
    file.insert(file.end(), stream.bytes.begin(), stream.bytes.end());
    file.resize(file.size() + (stream.bytes.size() + 1) % 2);
    file.insert(file.end(), lossy.begin() + 12, lossy.end());
    CHECK(webp_table_bytes(file) == (method == 1 ? 300 * of_group + 4096 : 0));
    CHECK(webp_width(file) == 128);
  }
  CHECK(webp_table_bytes({}) == 0);
  CHECK(webp_width({}) == 0);
}

TEST_CASE("WebP: tiles of another width are refused, also in images beside the slide") {
  if (!has_webp()) return;
  const TemporaryFolder folder;
  BitWriter black;
  black.put(0, 3);  // no transform, cache or groups
  for (int code = 0; code < 5; ++code) black.put_single_code();
  for (const unsigned width : {64U, 127U, 128U, 129U}) {
    CAPTURE(width);
    const Bytes tile = lossless(width, 128, black);
    CHECK(webp_width(tile) == width);
    TestTiff tiff = tiff_of_webp(128, tile);
    tiff.directories.push_back(stripped_directory(128, 128, 128, 3));
    tiff.directories[1].set_short(259, COMPRESSION_WEBP).set_short(262, PHOTOMETRIC_RGB).set_text(270, "label");
    tiff.directories[1].tiles = {tile};
    const auto slide = Slide::open(folder.write("slide.tif", tiff.bytes()));
    REQUIRE(slide->info().associated.size() == 1);
    if (width == 128) {
      CHECK(read_level_rgb(*slide) == std::vector<std::uint8_t>(std::size_t{128} * 128 * 3));
      CHECK(slide->read_associated(0).pixels == std::vector<std::uint8_t>(std::size_t{128} * 128 * 3));
      continue;
    }
    const std::string line = "WebP is " + std::to_string(width) + " pixels wide, expected 128";
    CHECK_THROWS_WITH_AS(read_level(*slide), doctest::Contains(line.c_str()), SlideError);
    CHECK_THROWS_WITH_AS(slide->read_associated(0), doctest::Contains(line.c_str()), SlideError);
  }
}

TEST_CASE("WebP: lossless tiles as libwebp writes them are read with little memory") {
  if (!has_webp()) return;
  const TemporaryFolder folder;
  const Picture picture = make_picture(512, 512, 3, 2);
  const std::filesystem::path path = folder.path() / "libtiff.tif";
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  REQUIRE(tiff != nullptr);
  for (const int tag : {TIFFTAG_IMAGEWIDTH, TIFFTAG_IMAGELENGTH, TIFFTAG_TILEWIDTH, TIFFTAG_TILELENGTH}) {
    TIFFSetField(tiff, static_cast<std::uint32_t>(tag), 512);
  }
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_WEBP);
  TIFFSetField(tiff, TIFFTAG_WEBP_LOSSLESS, 1);
  auto data = picture.data;
  const auto size = static_cast<tmsize_t>(data.size());
  REQUIRE(TIFFWriteEncodedTile(tiff, 0, data.data(), size) == size);
  TIFFClose(tiff);
  OpenOptions options;
  options.decode_memory = std::make_shared<DecodeMemory>(24 * mib);
  CHECK(read_level_rgb(*Slide::open(path, options)) == rgb_of(picture));
}

TEST_CASE("a lossless tile of WebP whose tables take more than the memory fails with its name") {
  if (!has_webp()) return;
  const TemporaryFolder folder;
  OpenOptions options;
  options.decode_memory = std::make_shared<DecodeMemory>(32 * mib);
  const Bytes tile = lossless(1024, blocks_of_groups(1024, 4096, [](unsigned block) { return block % 4096; }));
  const auto slide = Slide::open(folder.write("slide.tif", tiff_of_webp(1024, tile).bytes()), options);
  std::string line;
  try {
    read_level(*slide);
  } catch (const SlideError& error) {
    line = error.what();
  }
  CHECK(line.find("MiB to decode, and decoding may take 32 MiB") != std::string::npos);
}
