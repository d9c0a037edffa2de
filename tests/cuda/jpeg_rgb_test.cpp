// A batch of RGB: what the device is told, decoded with its code on the host.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "cuda/jpeg/decoder_memory.hpp"
#include "cuda/jpeg/jpeg_geometry.hpp"
#include "cuda/jpeg/octets.hpp"
#include "cuda/own_batch.hpp"
#include "support/host_coders/jpeg_decoder.hpp"

namespace slidestream::test {
namespace {

using cuda::JpegBatchLimits;
using cuda::JpegPlacement;
using cuda::JpegReason;

constexpr JpegBatchLimits roomy{.tiles = 500,
                                .compressed_bytes = 64U << 20,
                                .white_rectangles = 4,
                                .format = rgb_format,
                                .component_bytes = 64U << 20};

}  // namespace

TEST_CASE(
    "parts of tiles, anywhere in a plane of RGB, are as libjpeg-turbo has them, and nothing else is written (long)") {
  std::vector<NamedTile> named = tiles_of_every_kind();
  for (NamedTile& tile : tiles_for_rgb()) named.push_back(std::move(tile));
  JpegBatchLimits limits = roomy;
  limits.with_luminance = true;
  OwnBatch own(limits);
  std::mt19937 random(5);
  const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::uint32_t kinds = 0;
  cuda::HostJpegDecoder decoder;
  constexpr std::uint8_t untouched = 0xA5;
  for (const NamedTile& tile : named) {
    CAPTURE(tile.name);
    for (int round = 0; round < 3; ++round) {
      // Round 1: as a tile at the image's right and lower edge lies.
      DeviceTile wanted{&tile.bytes, whole_tile(tile.colour, tile.width, tile.height, rgb_format), 0, 0, tile.width,
                        tile.height};
      if (tile.name.starts_with("grey") && below(2) == 0) wanted.demand.colour = Colour::grey_inverted;
      if (round == 2) wanted.from_x = below(tile.width);
      if (round > 0) {
        wanted.from_y = below(tile.height);
        wanted.width = 1 + below(tile.width - wanted.from_x);
        wanted.height = 1 + below(tile.height - wanted.from_y);
      }
      const std::size_t pitch = (row_bytes(wanted) + 40) / 16 * 16 + (round == 2 ? 1 + below(40) : 0);
      const std::size_t offset = 16 * static_cast<std::size_t>(1 + below(4)) + (round == 2 ? 1 + below(15) : 0);
      own.batch.clear();
      JpegPlacement placement;
      placement.offset = offset;
      placement.pitch = static_cast<std::uint32_t>(pitch);
      placement.from_x = static_cast<std::uint32_t>(wanted.from_x);
      placement.from_y = static_cast<std::uint32_t>(wanted.from_y);
      placement.width = static_cast<std::uint32_t>(wanted.width);
      placement.height = static_cast<std::uint32_t>(wanted.height);
      // Behind it the luminance of the same part.
      const std::size_t luminance_offset =
          offset + pitch * static_cast<std::size_t>(wanted.height) + static_cast<std::size_t>(below(40));
      const std::size_t luminance_pitch = static_cast<std::size_t>(wanted.width + below(20));
      placement.luminance_offset = luminance_offset;
      placement.luminance_pitch = static_cast<std::uint32_t>(luminance_pitch);
      REQUIRE(own.batch.add(tile.bytes, 0, {}, wanted.demand, placement) == JpegReason::none);
      own.batch.finish(1000);
      kinds |= own.batch.octet_kinds();
      std::vector<std::uint8_t> plane(luminance_offset + luminance_pitch * static_cast<std::size_t>(wanted.height) + 64,
                                      untouched);
      const JpegReason verdict = decoder.decode(plane.data(), own.batch, 0, tile.bytes);
      REQUIRE(verdict == JpegReason::none);
      const auto check = [&](const DeviceTile& part, std::size_t first, std::size_t part_pitch) {
        const auto whole = decode_with_libjpeg(tile.bytes, part.demand);
        REQUIRE(whole.has_value());
        std::vector<std::uint8_t> written;
        for (int y = 0; y < part.height; ++y) {
          const auto row =
              plane.begin() + static_cast<std::ptrdiff_t>(first + static_cast<std::size_t>(y) * part_pitch);
          const auto end = row + static_cast<std::ptrdiff_t>(row_bytes(part));
          written.insert(written.end(), row, end);
          std::fill(row, end, untouched);
        }
        REQUIRE(written == part_of(*whole, part));
      };
      check(wanted, offset, pitch);
      check(luminance_of(wanted), luminance_offset, luminance_pitch);
      REQUIRE(std::all_of(plane.begin(), plane.end(), [](std::uint8_t v) { return v == untouched; }));
    }
  }
  CHECK(kinds == 0x3F);  // every kind was there
}

TEST_CASE("tiles of a batch have components of their own, from whole lines on") {
  const std::vector<NamedTile> named = tiles_for_rgb();
  OwnBatch own(roomy);
  for (const NamedTile& tile : named) {
    JpegPlacement placement;
    placement.pitch = 4096;
    placement.width = static_cast<std::uint32_t>(tile.width);
    placement.height = static_cast<std::uint32_t>(tile.height);
    // The batch's format counts.
    REQUIRE(own.batch.add(tile.bytes, 0, {}, whole_tile(tile.colour, tile.width, tile.height), placement) ==
            JpegReason::none);
  }
  own.batch.finish(1000);
  const auto* tiles =
      reinterpret_cast<const cuda::JpegDeviceTile*>(own.batch.upload().data() + own.batch.layout().tiles);
  for (std::uint32_t i = 0; i < own.batch.tiles(); ++i) {
    CHECK(tiles[i].first_block % 2 == 0);
    const std::uint32_t blocks = std::uint32_t{tiles[i].cycles_across} * tiles[i].cycle_rows * tiles[i].blocks_in_cycle;
    if (i + 1 < own.batch.tiles()) CHECK(tiles[i].first_block + (blocks + 1) / 2 * 2 == tiles[i + 1].first_block);
    cuda::JpegHeader header;
    REQUIRE(cuda::parse_jpeg_header(named[i].bytes, {}, header) == JpegReason::none);
    CHECK(cuda::jpeg_header_length(named[i].bytes) == header.scan_offset);
    CHECK(cuda::jpeg_header_length(std::span(named[i].bytes).first(header.scan_offset)) == header.scan_offset);
    CHECK(cuda::jpeg_header_length(std::span(named[i].bytes).first(header.scan_offset - 1)) < header.scan_offset);
    CHECK(cuda::component_bytes(header) == 64 * ((blocks + 1) / 2 * 2));
  }
  const std::uint32_t used =
      own.batch.mode(cuda::LaneMode::component_pairs).groups + own.batch.mode(cuda::LaneMode::component_blocks).groups;
  CHECK(used == own.batch.groups());
}

TEST_CASE("a batch takes as many components as there is room for") {
  const NamedTile tile = make_tile(256, 256, {}, 1);
  JpegBatchLimits limits = roomy;
  limits.component_bytes = 2 * 256 * 256 * 3 / 2;
  JpegPlacement placement;
  placement.pitch = 768;
  placement.width = placement.height = 256;
  OwnBatch own(limits);
  const auto add = [&] { return own.batch.add(tile.bytes, 0, {}, whole_tile(Colour::ycbcr, 256, 256), placement); };
  for (int round = 0; round < 2; ++round) {
    CHECK(add() == JpegReason::none);
    CHECK(add() == JpegReason::none);
    CHECK(add() == JpegReason::no_room);
    own.batch.clear();
  }
  CHECK(own.batch.add_white(placement));
  const auto* white =
      reinterpret_cast<const cuda::JpegDeviceRectangle*>(own.batch.upload().data() + own.batch.layout().rectangles);
  CHECK(white->width == 768);
  CHECK(white->height == 256);
  // With luminance there are two to fill.
  limits.with_luminance = true;
  limits.white_rectangles = 1;
  placement.luminance_offset = 5;
  placement.luminance_pitch = 300;
  OwnBatch both(limits);
  CHECK(both.batch.add_white(placement));
  CHECK_FALSE(both.batch.add_white(placement));
  REQUIRE(both.batch.white_rectangles() == 2);
  white =
      reinterpret_cast<const cuda::JpegDeviceRectangle*>(both.batch.upload().data() + both.batch.layout().rectangles);
  CHECK(white[0].width == 768);
  CHECK(white[1].offset == 5);
  CHECK(white[1].pitch == 300);
  CHECK(white[1].width == 256);
  CHECK(white[1].height == 256);
}

TEST_CASE("luminance takes no memory for components, RGB none for parts of sectors") {
  JpegBatchLimits limits = roomy;
  const std::size_t with = cuda::JpegDecoderMemory(cuda::JpegUploadLayout(limits), 132).size;
  limits.component_bytes = 0;
  const std::size_t without = cuda::JpegDecoderMemory(cuda::JpegUploadLayout(limits), 132).size;
  CHECK(with - without == roomy.component_bytes);
  limits.format = luminance_format;
  const std::size_t parked = std::size_t{132} * cuda::most_warps * 32 * cuda::parked_bytes_per_lane;
  CHECK(cuda::JpegDecoderMemory(cuda::JpegUploadLayout(limits), 132).size == without + parked);
  limits.component_bytes = roomy.component_bytes;
  CHECK(cuda::JpegDecoderMemory(cuda::JpegUploadLayout(limits), 132).size == without + parked);
}

TEST_CASE("four pixels at a time are YCbCr's formula, for every blue and red difference") {
  std::int64_t differ = 0;
  for (std::uint32_t blue = 0; blue < 256; ++blue) {
    for (std::uint32_t red = 0; red < 256; ++red) {
      // Other pixels' samples are others. All luminances that limits depend on come by.
      for (std::uint32_t y = (blue ^ red) % 5; y < 256; y += 5) {
        const std::uint32_t first = y | (255 - y) << 8 | (y ^ 85U) << 16 | blue << 24;
        const std::uint32_t seconds[4] = {blue, red, 255 - blue, y};
        const std::uint32_t thirds[4] = {red, 255 - red, y, blue};
        const auto pair = [](std::uint32_t even, std::uint32_t odd) { return 0xFF00FFU | even << 8 | odd << 24; };
        cuda::FourSums sums;
        cuda::add_four(first, {pair(seconds[0], seconds[2]), pair(seconds[1], seconds[3])},
                       {pair(thirds[0], thirds[2]), pair(thirds[1], thirds[3])}, sums);
        for (std::uint32_t i = 0; i < 4; ++i) {
          const Rgb expected = ycbcr_to_rgb(static_cast<int>(first >> 8 * i & 255U), static_cast<int>(seconds[i]),
                                            static_cast<int>(thirds[i]));
          differ += sums[i][0] >> 16 != expected.red || sums[i][1] >> 16 != expected.green ||
                            sums[i][2] >> 16 != expected.blue
                        ? 1
                        : 0;
        }
      }
    }
  }
  CHECK(differ == 0);
}

TEST_CASE("samples between others are libjpeg's triangle, for many fours of two rows") {
  std::mt19937 random(9);
  std::int64_t differ = 0;
  for (int round = 0; round < 20000; ++round) {
    std::uint32_t near[6], far[6];
    for (int i = 0; i < 6; ++i) {
      // The highest and the lowest, too.
      near[i] = round % 3 == 0 ? random() % 2 * 255 : random() % 256;
      far[i] = round % 3 == 0 ? random() % 2 * 255 : random() % 256;
    }
    const auto quartet = [](const std::uint32_t(&s)[6]) {
      return cuda::make_quartet(s[1] | s[2] << 8 | s[3] << 16 | s[4] << 24, s[0], s[5]);
    };
    const cuda::Chroma chroma = cuda::for_h2v2({quartet(near), quartet(far)});
    const auto at = [](const cuda::SpreadOctet& octet, std::uint32_t i) {
      const std::uint32_t words[] = {octet.even_low, octet.odd_low, octet.even_high, octet.odd_high};
      return words[i / 4 * 2 + i % 2] >> (i % 4 < 2 ? 8 : 24) & 255U;
    };
    const cuda::SpreadOctet of_two = cuda::upsample_h2v2(chroma.blue, chroma.red);
    const cuda::SpreadOctet of_one = cuda::upsample_h2v1(quartet(near));
    for (std::uint32_t i = 0; i < 8; ++i) {
      const std::uint32_t here = 1 + i / 2, beside = i % 2 != 0 ? here + 1 : here - 1;
      const std::uint32_t nearer = 3 * near[here] + far[here], farther = 3 * near[beside] + far[beside];
      differ += at(of_two, i) != (3 * nearer + farther + (i % 2 != 0 ? 7 : 8)) >> 4 ? 1 : 0;
      differ += at(of_one, i) != (3 * near[here] + near[beside] + (i % 2 != 0 ? 2 : 1)) >> 2 ? 1 : 0;
    }
  }
  CHECK(differ == 0);
}

}  // namespace slidestream::test
