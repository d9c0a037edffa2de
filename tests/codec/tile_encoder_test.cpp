#include "codec/tile_encoder.hpp"

#include <doctest/doctest.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <random>
#include <slidestream/error.hpp>
#include <vector>

#include "slide/jpeg_writer.hpp"
#include "support/plain_pyramid.hpp"

namespace slidestream {
namespace {

using Bytes = std::vector<std::byte>;
using test::WholeImage;

/// A tile with its last column and row repeated.
WholeImage padded(const WholeImage& tile, int side) {
  WholeImage whole({side, side}, tile.format);
  const std::size_t bytes = tile.format.pixel_bytes();
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const auto from = static_cast<std::size_t>(std::min<std::int64_t>(y, tile.size.height - 1) * tile.size.width +
                                                 std::min<std::int64_t>(x, tile.size.width - 1));
      std::copy_n(tile.bytes.data() + from * bytes, bytes,
                  whole.bytes.data() + static_cast<std::size_t>(y * side + x) * bytes);
    }
  }
  return whole;
}

/// The whole image as a stream of its own with libjpeg's defaults, but for the JFIF header.
Bytes plain_jpeg(const WholeImage& image, int quality, ChromaSubsampling subsampling = ChromaSubsampling::s420) {
  test::JpegWriter writer;
  jpeg_compress_struct& info = writer.jpeg;
  info.image_width = static_cast<JDIMENSION>(image.size.width);
  info.image_height = static_cast<JDIMENSION>(image.size.height);
  info.input_components = image.format.channels;
  info.in_color_space = image.format.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.write_JFIF_header = FALSE;
  if (image.format.channels == 3) {
    info.comp_info[0].h_samp_factor = subsampling == ChromaSubsampling::s444 ? 1 : 2;
    info.comp_info[0].v_samp_factor = subsampling == ChromaSubsampling::s420 ? 2 : 1;
  }
  jpeg_start_compress(&info, TRUE);
  for (std::int64_t y = 0; y < image.size.height; ++y) {
    auto* row = reinterpret_cast<JSAMPROW>(const_cast<std::byte*>(image.rows(y, 1).data));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return writer.take();
}

/// The segments of a stream, tables (DQT, DHT) apart; the scan belongs to SOS.
struct Segments {
  std::vector<Bytes> tables;
  std::vector<Bytes> others;
};

Segments segments_of(const Bytes& stream) {
  Segments segments;
  std::size_t at = 2;
  while (at + 4 <= stream.size()) {
    const auto marker = std::to_integer<unsigned>(stream[at + 1]);
    if (marker == 0xD9) break;
    std::size_t end =
        at + 2 + std::to_integer<std::size_t>(stream[at + 2]) * 256 + std::to_integer<std::size_t>(stream[at + 3]);
    if (marker == 0xDA) end = stream.size();
    const auto place = stream.begin();
    const bool table = marker == 0xDB || marker == 0xC4;
    (table ? segments.tables : segments.others)
        .emplace_back(place + static_cast<std::ptrdiff_t>(at), place + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  std::sort(segments.tables.begin(), segments.tables.end(), [](const Bytes& a, const Bytes& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  });
  return segments;
}

TEST_CASE("JPEG tiles are what libjpeg-turbo writes with its defaults, with the tables apart") {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const PixelFormat format = round % 2 == 0 ? rgb_format : luminance_format;
    const int side = round % 3 == 0 ? 256 : 16 * (1 + static_cast<int>(random() % 6));
    const int quality = round < 4 ? 1 + 33 * round : 1 + static_cast<int>(random() % 100);
    const auto inside = [&] {
      return round % 5 == 0 ? side : 1 + static_cast<int>(random() % static_cast<unsigned>(side));
    };
    const WholeImage tile = test::noise_image({inside(), inside()}, format, random);
    const auto encoder = make_tile_encoder(TileCompression::jpeg, format, quality, side);
    const Bytes tables = encoder->tables();
    const Bytes expected = plain_jpeg(padded(tile, side), quality);
    CAPTURE(round);
    // Twice: what an encoder did before mustn't show.
    for (int again = 0; again < 2; ++again) {
      const Bytes found = encoder->encode(tile.rows(0, tile.size.height));
      CHECK(segments_of(found).tables.empty());
      CHECK(segments_of(found).others == segments_of(expected).others);
    }
    CHECK(segments_of(tables).tables == segments_of(expected).tables);
    CHECK(segments_of(tables).others.empty());
    CHECK(encoder->tables() == tables);
  }
}

TEST_CASE("the colour differences of JPEG have the resolution that is asked for, in tiles and in files") {
  std::mt19937 random(3);
  constexpr std::array all = {ChromaSubsampling::s420, ChromaSubsampling::s422, ChromaSubsampling::s444};
  for (int round = 0; round < 24; ++round) {
    const ChromaSubsampling subsampling = all[static_cast<std::size_t>(round % 3)];
    const PixelFormat format = round % 4 == 3 ? luminance_format : rgb_format;
    const int side = 16 * (1 + static_cast<int>(random() % 4));
    const auto inside = [&] { return 1 + static_cast<int>(random() % static_cast<unsigned>(side)); };
    const WholeImage tile = test::noise_image({inside(), inside()}, format, random);
    CAPTURE(round);
    const auto encoder = make_tile_encoder(TileCompression::jpeg, format, 90, side, subsampling);
    const Bytes expected = plain_jpeg(padded(tile, side), 90, subsampling);
    CHECK(segments_of(encoder->encode(tile.rows(0, tile.size.height))).others == segments_of(expected).others);
    CHECK(segments_of(encoder->tables()).tables == segments_of(expected).tables);
    const auto files = make_jpeg_file_encoder(format, 90, side, subsampling);
    const Segments found = segments_of(files->encode(tile.rows(0, tile.size.height)));
    const Segments whole = segments_of(plain_jpeg(tile, 90, subsampling));
    CHECK(found.tables == whole.tables);
    CHECK(found.others.back() == whole.others.back());  // behind the JFIF header
  }
}

TEST_CASE("other tiles hold the padded pixels") {
  std::mt19937 random(2);
  for (int round = 0; round < 40; ++round) {
    const PixelFormat format{static_cast<SampleType>(round % 3), 1 + round % 4};
    const int side = 16 * (1 + static_cast<int>(random() % 4));
    const auto any = [&] { return 1 + static_cast<int>(random() % static_cast<unsigned>(side)); };
    const Size size{any(), any()};
    const WholeImage tile = test::noise_image(size, format, random);
    const Bytes expected = padded(tile, side).bytes;
    const auto view = tile.rows(0, tile.size.height);
    CHECK(make_tile_encoder(TileCompression::none, format, 0, side)->encode(view) == expected);
    const Bytes frame = make_tile_encoder(TileCompression::zstd, format, 0, side)->encode(view);
    Bytes found(expected.size());
    CHECK(ZSTD_decompress(found.data(), found.size(), frame.data(), frame.size()) == expected.size());
    CHECK(found == expected);
  }
}

TEST_CASE("JPEG is refused for what it can't hold") {
  CHECK_THROWS_AS(make_tile_encoder(TileCompression::jpeg, {SampleType::uint16, 1}, 85, 256), Error);
  CHECK_THROWS_AS(make_tile_encoder(TileCompression::jpeg, {SampleType::uint8, 4}, 85, 256), Error);
  CHECK(can_encode(TileCompression::zstd, {SampleType::float32, 4}));
}

}  // namespace
}  // namespace slidestream
