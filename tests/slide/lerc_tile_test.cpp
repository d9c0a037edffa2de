// What of LERC reaches liblerc, which reads behind its memory where a tile's counts contradict each other.
#include "slide/tiff/lerc_tile.hpp"

#include <doctest/doctest.h>
#include <tiffio.h>

#include <bit>
#include <cstdint>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>

#include "slide/test_images.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

void put(Bytes& to, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

/// A tile of 8 x 8 in one block, unless a test says something else.
struct Blob {
  std::uint32_t version = 4, height = 8, width = 8, depth = 1, valid = 64, block = 8, longer = 0, type = 1;
  Bytes mask = {};
  double least = 0.0, most = 255.0;
  Bytes rest = {};

  Bytes bytes() const {
    Bytes behind;
    for (const std::uint32_t number : {height, width}) put(behind, number, 4);
    if (version >= 4) put(behind, depth, 4);
    put(behind, valid, 4);
    put(behind, block, 4);
    const std::size_t doubles = version >= 6 ? 5 : 3;
    const std::size_t size = (version >= 3 ? 14 : 10) + behind.size() + 8 + (version >= 6 ? 8 : 0) + 8 * doubles + 4 +
                             mask.size() + rest.size() + longer;
    put(behind, size, 4);
    put(behind, type, 4);
    if (version >= 6) put(behind, 0, 8);
    for (const double number : {0.5, least, most}) put(behind, std::bit_cast<std::uint64_t>(number), 8);
    if (version >= 6) put(behind, 0, 16);
    put(behind, mask.size(), 4);
    Bytes all;
    for (const char c : std::string("Lerc2 ")) all.push_back(static_cast<std::byte>(c));
    put(all, version, 4);
    if (version >= 3) put(all, 0, 4);
    for (const Bytes* part : {static_cast<const Bytes*>(&behind), &mask, &rest}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  }

  /// Why it is refused; empty: it isn't.
  std::string fault() const {
    try {
      check_lerc_tile(bytes(), LERC_ADD_COMPRESSION_NONE, {8, 8, 1});
    } catch (const TileError& error) {
      return error.what();
    }
    return {};
  }
  bool contradicts() const { return fault() == "LERC that contradicts itself"; }
};

/// Ranges as version 4 has them, blocks, and one block.
Bytes blocks(std::initializer_list<unsigned> block, std::size_t more = 0, unsigned with = 0) {
  Bytes bytes;
  for (const unsigned value : {0U, 255U, 0U, 0U}) put(bytes, value, 1);
  for (const unsigned value : block) put(bytes, value, 1);
  bytes.resize(bytes.size() + more, static_cast<std::byte>(with));
  return bytes;
}

/// Writes and reads a tile of the picture with libtiff's own LERC.
void check_written(const TemporaryFolder& folder, const Picture& picture, double error, int packing) {
  const std::filesystem::path path = folder.path() / "written.tif";
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  REQUIRE(tiff != nullptr);
  for (const int tag : {TIFFTAG_IMAGEWIDTH, TIFFTAG_IMAGELENGTH, TIFFTAG_TILEWIDTH, TIFFTAG_TILELENGTH}) {
    TIFFSetField(tiff, static_cast<std::uint32_t>(tag), picture.width);
  }
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, picture.samples);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  const std::uint16_t opacity = EXTRASAMPLE_UNASSALPHA;
  if (picture.samples == 4) TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &opacity);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_LERC);
  TIFFSetField(tiff, TIFFTAG_LERC_MAXZERROR, error);
  TIFFSetField(tiff, TIFFTAG_LERC_ADD_COMPRESSION, packing);
  Bytes data = to_bytes(picture);
  const auto size = static_cast<tmsize_t>(data.size());
  REQUIRE(TIFFWriteEncodedTile(tiff, 0, data.data(), size) == size);
  TIFFClose(tiff);
  CHECK(read_error(path).empty());
  if (error == 0.0) CHECK(read_level_rgb(*Slide::open(path)) == rgb_of(picture));
}

}  // namespace

TEST_CASE("LERC: tiles as libtiff writes them are read") {
  if (TIFFIsCODECConfigured(COMPRESSION_LERC) != 1) {
    report_skipped("libtiff was built without LERC");
    return;
  }
  const TemporaryFolder folder;
  for (const int samples : {3, 4}) {
    Picture noise = make_picture(64, 64, samples, 3), steps = noise;
    for (std::size_t i = 0; i < noise.data.size(); ++i) {
      const bool is_opacity = samples == 4 && i % 4 == 3;
      if (is_opacity) noise.data[i] = i % 5 == 0 ? 0 : 255;
      // Few values, far apart: tables.
      steps.data[i] = is_opacity ? 255 : static_cast<std::uint8_t>(noise.data[i] % 3 * 120);
    }
    for (const Picture* picture : {&noise, &steps}) {
      for (const double error : {0.0, 1.0, 8.0}) {
        for (const int packing : {LERC_ADD_COMPRESSION_NONE, LERC_ADD_COMPRESSION_DEFLATE, LERC_ADD_COMPRESSION_ZSTD}) {
          CAPTURE(samples);
          CAPTURE(error);
          CAPTURE(packing);
          // Colours of transparent pixels aren't kept.
          if (samples == 4 && picture == &noise && error == 0.0) continue;
          check_written(folder, *picture, error, packing);
        }
      }
    }
  }
}

TEST_CASE("LERC: a header that isn't the tile's is refused") {
  CHECK(Blob{.least = 7.0, .most = 7.0}.fault().empty());
  for (const std::uint32_t version : {1U, 2U, 3U, 4U, 5U, 6U}) {
    CHECK(Blob{.version = version, .least = 7.0, .most = 7.0}.fault().empty());
  }
  CHECK(Blob{.version = 0}.fault() == "LERC of version 0");
  CHECK(Blob{.version = 7}.fault() == "LERC of version 7");
  CHECK(Blob{.height = 40000, .width = 40000}.fault() == "LERC of 40000 x 40000 x 1 samples, expected 8 x 8 x 1");
  CHECK(Blob{.depth = 0x7FFFFFFF}.fault() == "LERC of 8 x 8 x 2147483647 samples, expected 8 x 8 x 1");
  CHECK(Blob{.depth = 0}.contradicts());
  CHECK(Blob{.valid = 65}.contradicts());
  CHECK(Blob{.block = 0}.contradicts());
  CHECK(Blob{.block = 33}.contradicts());
  CHECK(Blob{.longer = 1}.contradicts());
  CHECK(Blob{.type = 6}.contradicts());
  const Bytes whole = Blob{.least = 7.0, .most = 7.0}.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_THROWS_AS(check_lerc_tile(std::span(whole).first(size), LERC_ADD_COMPRESSION_NONE, {8, 8, 1}), TileError);
  }
}

TEST_CASE("LERC: a block has as many values as pixels, and each is in its table") {
  constexpr unsigned byte_count = 0x80, table = 0x20;
  CHECK(Blob{.rest = blocks({1, 0, byte_count | 1, 64}, 8)}.fault().empty());
  CHECK(Blob{.rest = blocks({1, 0, byte_count | 1, 64}, 7)}.contradicts());
  // liblerc ends the process here: it has no value at all.
  CHECK(Blob{.rest = blocks({1, 0, byte_count, 64}, 8)}.contradicts());
  // And here it gives what lies behind the only one.
  CHECK(Blob{.rest = blocks({1, 0, byte_count | 1, 1}, 8)}.contradicts());
  CHECK(Blob{.rest = blocks({1, 0, 0xC0 | 1, 64}, 8)}.contradicts());
  // Zero and two values, whose places take two bits.
  CHECK(Blob{.rest = blocks({1, 0, byte_count | table | 8, 64, 3, 5, 9}, 16, 0xAA)}.fault().empty());
  CHECK(Blob{.rest = blocks({1, 0, byte_count | table | 8, 64, 3, 5, 9}, 16, 0xFF)}.contradicts());
  CHECK(Blob{.rest = blocks({1, 0, byte_count | table | 8, 64, 1}, 16)}.contradicts());
  // Lengths of Huffman's codes are stored in the same way.
  Bytes huffman = blocks({});
  huffman.back() = std::byte{1};
  for (const unsigned number : {4U, 256U, 0U, 3U}) put(huffman, number, 4);
  for (const bool is_sound : {true, false}) {
    Bytes rest = huffman;
    for (const unsigned value : {byte_count | table | 4, 3U, 3U, 0x21U, is_sound ? 0x24U : 0x3FU}) put(rest, value, 1);
    CHECK(Blob{.rest = rest}.contradicts() != is_sound);
  }
}

TEST_CASE("LERC: where a mask says which pixels are valid, blocks have values for them alone") {
  // The first 12 pixels: one byte as it is, then another, then six of zeros, and the end.
  Bytes mask;
  for (const unsigned value : {2U, 0U, 0xFFU, 0xF0U, 0xFAU, 0xFFU, 0U, 0U, 0x80U}) put(mask, value, 1);
  const Blob sound{.valid = 12, .mask = mask, .rest = blocks({1, 0, 0x80 | 2, 12}, 3)};
  CHECK(sound.fault().empty());
  Blob other = sound;
  other.rest = blocks({1, 0, 0x80 | 2, 11}, 3);
  CHECK(other.contradicts());
  other = sound;
  other.mask.clear();
  CHECK(other.contradicts());
  other = sound;
  other.valid = 64;
  CHECK(other.contradicts());
  for (const std::size_t at : {0U, 4U, 8U}) {
    other = sound;
    other.mask[at] ^= std::byte{1};
    CHECK(other.contradicts());
  }
  CHECK(Blob{.valid = 0}.fault().empty());
}
