// The entropy decoder and the transforms that the GPU runs, run on the host, against libjpeg-turbo.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <vector>

#include "cuda/jpeg_tiles.hpp"
#include "slide/test_images.hpp"
#include "support/host_coders/jpeg_decoder.hpp"
#include "support/test_data.hpp"
#include "support/wide.hpp"

namespace slidestream::test {
namespace {

using cuda::HostJpegDecoder;
using cuda::JpegReason;
using cuda::JpegTableReferences;

/// Decodes with the device's code on the host; the reason, as text, where it doesn't vouch for the tile.
struct Decoded {
  JpegReason reason;
  std::vector<std::uint8_t> pixels;
};

Decoded decode(const Bytes& jpeg, Colour colour, const Bytes& tables = {},
               const PixelFormat& format = luminance_format) {
  JpegTableReferences references;
  const JpegReason reason = cuda::parse_jpeg_tables(tables, references);
  if (reason != JpegReason::none) return {reason, {}};
  // Where the header isn't for the device, any demand does.
  const TileDemand demand = demand_of_frame(jpeg, colour, tables, format).value_or(whole_tile(colour, 64, 64, format));
  HostJpegDecoder decoder;
  Decoded decoded{decoder.decode(jpeg, references, demand), {}};
  if (decoded.reason == JpegReason::none) decoded.pixels.assign(decoder.pixels().begin(), decoder.pixels().end());
  return decoded;
}

/// The CPU's decoder for a slide whose tiles have the frame's size.
std::optional<std::vector<std::uint8_t>> decode_on_cpu(const Bytes& jpeg, Colour colour, const PixelFormat& format) {
  const std::optional<TileDemand> demand = demand_of_frame(jpeg, colour, {}, format);
  return demand ? decode_with_libjpeg(jpeg, *demand) : std::nullopt;
}

void check_equal(const Bytes& jpeg, Colour colour, const PixelFormat& format) {
  const std::optional<std::vector<std::uint8_t>> expected = decode_on_cpu(jpeg, colour, format);
  REQUIRE(expected.has_value());
  const Decoded decoded = decode(jpeg, colour, {}, format);
  CHECK_MESSAGE(decoded.reason == JpegReason::none, cuda::describe(decoded.reason));
  CHECK(decoded.pixels == *expected);
}

/// Flagged, or what libjpeg-turbo makes of it without finding damage.
bool flagged_or_equal(const Bytes& jpeg, Colour colour, const PixelFormat& format, std::size_t& flagged) {
  const Decoded decoded = decode(jpeg, colour, {}, format);
  if (decoded.reason != JpegReason::none) {
    ++flagged;
    return true;
  }
  const std::optional<std::vector<std::uint8_t>> expected = decode_on_cpu(jpeg, colour, format);
  return expected.has_value() && decoded.pixels == *expected;
}

TEST_CASE("tiles of every kind decode as libjpeg-turbo decodes them (long)") {
  for (const NamedTile& tile : tiles_of_every_kind()) {
    CAPTURE(tile.name);
    check_equal(tile.bytes, tile.colour, luminance_format);
    check_equal(tile.bytes, tile.colour, rgb_format);
  }
  for (const NamedTile& tile : tiles_for_rgb()) {
    CAPTURE(tile.name);
    check_equal(tile.bytes, tile.colour, rgb_format);
  }
  const Bytes grey = make_tile(50, 20, {.coding = TileOptions::Coding::grey}, 1).bytes;
  for (const PixelFormat& format : {luminance_format, rgb_format}) check_equal(grey, Colour::grey_inverted, format);
}

TEST_CASE("tables may come from elsewhere") {
  JpegOptions options;
  options.without_tables = true;
  const Picture picture = make_picture(64, 48, 3, 5);
  const Bytes abbreviated = encode_jpeg(picture, options);
  options.without_tables = false;
  const Bytes whole = encode_jpeg(picture, options);
  const Decoded decoded = decode(abbreviated, Colour::ycbcr, encode_jpeg_tables(options));
  CHECK(decoded.reason == JpegReason::none);
  CHECK(decoded.pixels == decode(whole, Colour::ycbcr).pixels);
  CHECK(decode(abbreviated, Colour::ycbcr).reason == JpegReason::missing_table);
}

TEST_CASE("what isn't for the device is said") {
  const Picture picture = make_picture(40, 40, 3, 7);
  const auto reason_for = [&picture](const JpegOptions& options, Colour colour = Colour::ycbcr) {
    return decode(encode_jpeg(picture, options), colour).reason;
  };
  CHECK(reason_for({.progressive = true}) == JpegReason::other_coding);
  CHECK(reason_for({.arithmetic = true}) == JpegReason::other_coding);
  CHECK(decode({}, Colour::ycbcr).reason == JpegReason::not_a_jpeg);
  Bytes jpeg = encode_jpeg(picture);
  jpeg.resize(jpeg.size() - 100);
  CHECK(decode(jpeg, Colour::ycbcr).reason == JpegReason::wrong_length);
  // Components of the scan in another order than the frame's: libjpeg takes some such orders, and refuses others.
  Bytes shuffled = encode_jpeg(picture, {.coding = JpegOptions::Coding::rgb});
  const std::array<std::byte, 2> sos = {std::byte{0xFF}, std::byte{0xDA}};
  const auto scan = std::search(shuffled.begin(), shuffled.end(), sos.begin(), sos.end());
  REQUIRE(scan != shuffled.end());
  std::swap(scan[7], scan[9]);
  CHECK(decode(shuffled, Colour::rgb).reason == JpegReason::components);
  // What libjpeg can't upsample is none of luminance's business.
  Bytes fractional = encode_jpeg(picture, {.horizontal = 1, .vertical = 1});
  const std::array<std::byte, 2> sof = {std::byte{0xFF}, std::byte{0xC0}};
  const auto frame = std::search(fractional.begin(), fractional.end(), sof.begin(), sof.end());
  REQUIRE(frame != fractional.end());
  frame[11] = std::byte{0x31};
  frame[14] = frame[17] = std::byte{0x21};
  CHECK(decode(fractional, Colour::ycbcr, {}, rgb_format).reason == JpegReason::sampling);
  CHECK(decode(fractional, Colour::ycbcr).reason != JpegReason::sampling);
  const Picture two{16, 16, 2, std::vector<std::uint8_t>(512, 9)};
  CHECK(decode(encode_jpeg(two, {.coding = JpegOptions::Coding::unknown}), Colour::ycbcr).reason ==
        JpegReason::components);
}

TEST_CASE("a tile cut anywhere, and a tile with more data, is flagged or as libjpeg-turbo has it (long)") {
  for (const NamedTile& tile : tiles_of_every_kind()) {
    if (tile.bytes.size() > 4000) continue;
    CAPTURE(tile.name);
    std::size_t flagged = 0;
    for (std::size_t size = 0; size < tile.bytes.size(); size += 1 + size / 40) {
      Bytes cut(tile.bytes.begin(), tile.bytes.begin() + static_cast<std::ptrdiff_t>(size));
      for (const PixelFormat& format : {luminance_format, rgb_format})
        REQUIRE(flagged_or_equal(cut, tile.colour, format, flagged));
    }
    for (unsigned value : {0x00U, 0x55U, 0xFFU, 0xD0U, 0xD9U}) {
      for (std::size_t count = 1; count < 10; ++count) {
        Bytes longer = tile.bytes;
        longer.insert(longer.end() - 2, count, std::byte{static_cast<std::uint8_t>(value)});
        REQUIRE(flagged_or_equal(longer, tile.colour, rgb_format, flagged));
        REQUIRE(flagged_or_equal(longer, tile.colour, luminance_format, flagged));
      }
    }
  }
}

TEST_CASE("mutants are flagged, or as libjpeg-turbo has them") {
  std::mt19937 random(11);
  std::size_t flagged = 0;
  std::size_t count = 0;
  for (const NamedTile& tile : tiles_of_every_kind()) {
    if (tile.bytes.size() > 8000) continue;
    CAPTURE(tile.name);
    for (int i = 0; i < wide_or_few(150, 25); ++i) {
      const Bytes mutant = mutate(tile.bytes, random);
      REQUIRE(flagged_or_equal(mutant, tile.colour, i % 3 == 0 ? rgb_format : luminance_format, flagged));
      ++count;
    }
  }
  CHECK(flagged > count / 10);
  CHECK(flagged < count);
}

TEST_CASE("headers of real slides' tiles are understood") {
  const auto root = test_data_root();
  if (!root) return report_skipped("no test data");
  const auto slide = Slide::open(*root / "data" / "cmu-1-small-region.svs");
  const Level& level = slide->info().levels.at(0);
  REQUIRE(level.codec == Codec::jpeg);
  const Bytes tables = level_tables(*slide, 0);
  TileDecoder reference;
  std::vector<std::uint8_t> expected(static_cast<std::size_t>(level.tile_width * level.tile_height));
  for (std::int64_t index = 0; index < level.columns * level.rows; index += 7) {
    const TileRange range = slide->tile(0, index);
    Bytes bytes(range.length);
    slide->read(range.offset, bytes);
    reference.decode(*slide, 0, index, bytes, 0, 0,
                     {expected.data(), level.tile_width, level.tile_width, level.tile_height});
    const Decoded decoded = decode(bytes, Colour::rgb, tables);
    CHECK_MESSAGE(decoded.reason == JpegReason::none, cuda::describe(decoded.reason));
    CHECK(decoded.pixels == expected);
  }
}

}  // namespace
}  // namespace slidestream::test
