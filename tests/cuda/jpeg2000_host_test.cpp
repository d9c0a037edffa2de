// The JPEG 2000 decoder that the GPU runs, run on the host, against OpenJPEG.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "cuda/jpeg2000_tiles.hpp"
#include "support/host_coders/jpeg2000_decoder.hpp"
#include "support/test_data.hpp"
#include "support/wide.hpp"

namespace slidestream::test {
namespace {

using cuda::Jpeg2000Reason;
using Pixels = std::vector<std::uint8_t>;

TileDemand demand_for_whole(const NamedTile& tile, const PixelFormat& format = luminance_format) {
  return whole_tile(tile.colour, tile.width, tile.height, format);
}

using Formats = std::vector<PixelFormat>;

void check_equal(cuda::HostJpeg2000Decoder& decoder, const NamedTile& tile,
                 const Formats& formats = {luminance_format, rgb_format}) {
  CAPTURE(tile.name);
  for (const PixelFormat& format : formats) {
    CAPTURE(format.channels);
    const TileDemand demand = demand_for_whole(tile, format);
    const auto expected = decode_with_openjpeg(tile.bytes, demand);
    REQUIRE(expected.has_value());
    const Jpeg2000Reason reason = decoder.decode(tile.bytes, demand);
    REQUIRE_MESSAGE(reason == Jpeg2000Reason::none, cuda::describe(reason));
    CHECK(std::equal(expected->begin(), expected->end(), decoder.pixels().begin(), decoder.pixels().end()));
  }
}

TEST_CASE("JPEG 2000 tiles of every kind are as OpenJPEG has them (long)") {
  cuda::HostJpeg2000Decoder decoder;
  // Kinds come in pairs: of three ways by turns each of a pair has each.
  const std::vector<Formats> turns = {{luminance_format, rgb_format}, {luminance_format}, {rgb_format}};
  std::size_t turn = 0;
  for (const NamedTile& tile : jpeg2000_tiles_of_every_kind()) {
    check_equal(decoder, tile, turns[is_wide() ? 0 : turn++ % turns.size()]);
  }
}

TEST_CASE("large JPEG 2000 tiles are as OpenJPEG has them (long)") {
  cuda::HostJpeg2000Decoder decoder;
  if (is_wide()) {
    for (const NamedTile& tile : jpeg2000_large_tiles()) check_equal(decoder, tile);
    return;
  }
  // The largest two take most of the time: one of them in one format.
  for (const NamedTile& tile : jpeg2000_large_tiles({.most = 11})) {
    check_equal(decoder, tile, tile.width < 1024 ? Formats{luminance_format, rgb_format} : Formats{rgb_format});
  }
}

TEST_CASE("a real slide's JPEG 2000 tiles are as OpenJPEG has them (long)") {
  const auto root = test_data_root();
  if (!root) return report_skipped("no test data");
  const auto tiles = jpeg2000_tiles_of_slide(*root / "data" / "tcga-cr-7395.svs");
  REQUIRE(tiles.size() > 200);
  cuda::HostJpeg2000Decoder decoder;
  // Some each time; the device's test takes all of them.
  for (std::size_t i = 0; i < tiles.size(); i += 7) check_equal(decoder, tiles[i]);
}

TEST_CASE("JPEG 2000 tiles that aren't for the device are left to the CPU") {
  cuda::HostJpeg2000Decoder decoder;
  for (const NamedTile& tile : jpeg2000_tiles_for_the_cpu()) {
    CAPTURE(tile.name);
    CHECK(decode_with_openjpeg(tile.bytes, demand_for_whole(tile)).has_value());
    CHECK(decoder.decode(tile.bytes, demand_for_whole(tile)) != Jpeg2000Reason::none);
  }
}

TEST_CASE("a JPEG 2000 tile that is cut anywhere isn't vouched for") {
  cuda::HostJpeg2000Decoder decoder;
  const NamedTile tile = jpeg2000_tiles_of_every_kind({.most = 2})[1];
  for (std::size_t length = 0; length < tile.bytes.size(); ++length) {
    CAPTURE(length);
    CHECK(decoder.decode(std::span(tile.bytes).first(length), demand_for_whole(tile)) != Jpeg2000Reason::none);
  }
}

TEST_CASE("bytes behind a JPEG 2000 tile don't matter") {
  cuda::HostJpeg2000Decoder decoder;
  NamedTile tile = jpeg2000_tiles_of_every_kind({.most = 1})[0];
  tile.bytes.resize(tile.bytes.size() + 5);
  check_equal(decoder, tile);
}

TEST_CASE("mutants of JPEG 2000 tiles are flagged, or as OpenJPEG has them") {
  const char* wanted = std::getenv("SLIDESTREAM_MUTANTS");
  const std::size_t total = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : is_wide() ? 3000 : 250;
  std::vector<NamedTile> named;
  for (NamedTile& tile : jpeg2000_tiles_of_every_kind()) {
    if (tile.bytes.size() < 5000) named.push_back(std::move(tile));
  }
  cuda::HostJpeg2000Decoder decoder;
  std::mt19937 random(wanted != nullptr ? static_cast<unsigned>(total) : 1U);
  std::size_t flagged = 0;
  std::size_t by_packets = 0;
  for (std::size_t i = 0; i < total; ++i) {
    const NamedTile& origin = named[random() % named.size()];
    const Bytes mutant = jpeg2000_mutant(origin.bytes, random);
    const TileDemand demand = demand_for_whole(origin, random() % 2 == 0 ? rgb_format : luminance_format);
    const Jpeg2000Reason reason = decoder.decode(mutant, demand);
    if (reason != Jpeg2000Reason::none) {
      ++flagged;
      if (reason >= Jpeg2000Reason::bad_packet) ++by_packets;
      continue;
    }
    CAPTURE(origin.name);
    CAPTURE(i);
    const auto expected = decode_with_openjpeg(mutant, demand);
    REQUIRE(expected.has_value());
    const std::size_t pixel = demand.format.pixel_bytes(), width = decoder.width() * pixel;
    bool equal = true;
    for (std::size_t y = 0; y < decoder.height(); ++y) {
      const auto row = decoder.pixels().subspan(y * width, width);
      const std::size_t at = y * pixel * static_cast<std::size_t>(origin.width);
      equal = equal && std::equal(row.begin(), row.end(), expected->begin() + static_cast<std::ptrdiff_t>(at));
    }
    REQUIRE(equal);
  }
  MESSAGE(total << " mutants, " << flagged << " flagged, " << by_packets << " of them by their packets");
  CHECK(by_packets > total / 10);
  CHECK(flagged < total * 9 / 10);
}

}  // namespace
}  // namespace slidestream::test
