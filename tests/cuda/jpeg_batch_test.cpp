// What a batch takes, refuses, and tells the device.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "cuda/own_batch.hpp"

namespace slidestream::test {
namespace {

using cuda::JpegBatch;
using cuda::JpegBatchLimits;
using cuda::JpegLevelTables;
using cuda::JpegPlacement;
using cuda::JpegReason;

constexpr JpegBatchLimits roomy{.tiles = 500, .compressed_bytes = 64U << 20};

TEST_CASE("a tile's first bytes do where its header is whole, and a header that is cut is damaged (long)") {
  const NamedTile tile = make_tile(64, 64, {}, 1);
  OwnBatch whole(roomy);
  REQUIRE(whole.add(tile, 640) == JpegReason::none);
  const auto& expected = whole.part<cuda::JpegDeviceTile>(whole.batch.layout().tiles, 1)[0];
  const std::size_t header = static_cast<std::size_t>(expected.scan_offset) - 640;
  REQUIRE(header > 100);
  JpegPlacement placement;
  placement.pitch = 4096;
  placement.width = placement.height = 64;
  for (std::size_t length = 0; length <= tile.bytes.size(); ++length) {
    OwnBatch cut(roomy);
    const JpegReason reason =
        cut.batch.add_front(std::span(tile.bytes).first(length), tile.bytes.size(), 640, cut.tables,
                            whole_tile(tile.colour, tile.width, tile.height), placement);
    INFO(length, " bytes of ", header);
    if (length < header) {
      CHECK((reason == JpegReason::damaged_header || reason == JpegReason::not_a_jpeg));
      CHECK(cut.batch.tiles() == 0);
      continue;
    }
    REQUIRE(reason == JpegReason::none);
    const auto& found = cut.part<cuda::JpegDeviceTile>(cut.batch.layout().tiles, 1)[0];
    CHECK(found.scan_offset == expected.scan_offset);
    CHECK(found.scan_bytes == expected.scan_bytes);
    CHECK(cut.batch.compressed_end() == whole.batch.compressed_end());
  }
}

TEST_CASE("a full batch refuses, and takes again when it is cleared") {
  const NamedTile tile = make_tile(64, 64, {}, 1);
  OwnBatch tiles({.tiles = 2, .compressed_bytes = 1U << 20});
  for (int round = 0; round < 3; ++round) {
    CHECK(tiles.add(tile) == JpegReason::none);
    CHECK(tiles.add(tile) == JpegReason::none);
    CHECK(tiles.add(tile) == JpegReason::no_room);
    CHECK(tiles.batch.tiles() == 2);
    tiles.batch.clear();
  }
  OwnBatch codings({.tiles = 10, .compressed_bytes = 1U << 20, .codings = 1});
  CHECK(codings.add(tile) == JpegReason::none);
  CHECK(codings.add(make_tile(64, 64, {.quality = 60}, 1)) == JpegReason::no_room);
  CHECK(codings.add(make_tile(80, 16, {}, 2)) == JpegReason::none);
  CHECK(codings.batch.codings() == 1);
  codings.batch.clear();
  CHECK(codings.add(make_tile(64, 64, {.quality = 60}, 1)) == JpegReason::none);
  OwnBatch segments({.tiles = 10, .compressed_bytes = 1U << 20, .segments = 12});
  CHECK(segments.add(make_tile(64, 48, {.restart_interval = 1}, 1)) == JpegReason::none);
  CHECK(segments.add(tile) == JpegReason::no_room);
  OwnBatch bytes({.tiles = 2, .compressed_bytes = 1000});
  CHECK(bytes.add(make_tile(256, 256, {}, 3)) == JpegReason::no_room);
  CHECK_FALSE(bytes.batch.add_white({}));
}

TEST_CASE("rectangles must lie inside the frame") {
  const NamedTile tile = make_tile(64, 48, {}, 1);
  OwnBatch own(roomy);
  const auto reason_for = [&](std::uint32_t x, std::uint32_t y, std::uint32_t width, std::uint32_t height,
                              const TileDemand& demand = whole_tile(Colour::ycbcr, 64, 48)) {
    JpegPlacement placement;
    placement.pitch = 64;
    placement.from_x = x;
    placement.from_y = y;
    placement.width = width;
    placement.height = height;
    return own.batch.add(tile.bytes, 0, own.tables, demand, placement);
  };
  CHECK(reason_for(0, 0, 64, 48) == JpegReason::none);
  CHECK(reason_for(63, 47, 1, 1) == JpegReason::none);
  CHECK(reason_for(1, 0, 64, 48) == JpegReason::size);
  CHECK(reason_for(0, 1, 64, 48) == JpegReason::size);
  CHECK(reason_for(0xFFFFFFFFU, 0, 2, 1) == JpegReason::size);
  CHECK(reason_for(0, 0, 0, 48) == JpegReason::size);
  // Whatever is wanted of it, the frame must be the tile's.
  CHECK(reason_for(0, 0, 64, 48, whole_tile(Colour::grey_inverted, 64, 48)) == JpegReason::components);
  CHECK(reason_for(0, 0, 64, 48, whole_tile(Colour::grey, 64, 48)) == JpegReason::components);
  CHECK(reason_for(0, 0, 8, 8, whole_tile(Colour::ycbcr, 72, 48)) == JpegReason::size);
  CHECK(reason_for(0, 0, 8, 8, whole_tile(Colour::ycbcr, 64, 40)) == JpegReason::size);
  CHECK(reason_for(0, 0, 8, 8, {Colour::ycbcr, 72, 56, 64, 48}) == JpegReason::none);
  CHECK(reason_for(0, 0, 8, 8, {Colour::ycbcr, 72, 56, 64, 49}) == JpegReason::size);
}

TEST_CASE("every segment stands in the queue once, in its coding's group") {
  const std::vector<NamedTile> tiles = tiles_of_every_kind();
  OwnBatch own(roomy);
  for (const std::uint32_t lanes : {0U, 1000U, 1U << 30}) {
    own.batch.clear();
    std::uint64_t offset = 0;
    for (const NamedTile& tile : tiles) {
      REQUIRE(own.add(tile, offset) == JpegReason::none);
      offset += tile.bytes.size();
    }
    own.batch.finish(lanes);
    const JpegBatch& batch = own.batch;
    CHECK(batch.compressed_end() == offset);
    if (lanes != 1000) CHECK((batch.most_pieces() != 0) == (lanes != 0));
    const auto device_tiles = own.part<cuda::JpegDeviceTile>(batch.layout().tiles, batch.tiles());
    const auto groups = own.part<cuda::JpegDeviceGroup>(batch.layout().groups, batch.groups());
    const auto queue = own.part<std::uint32_t>(batch.layout().queue, batch.segments());
    std::vector<std::uint32_t> coding_of(batch.segments());
    std::uint32_t next = 0;
    for (const cuda::JpegDeviceTile& tile : device_tiles) {
      CHECK(tile.first_segment == next);
      for (std::uint32_t s = 0; s < tile.segments; ++s) coding_of[next++] = tile.coding;
    }
    CHECK(next == batch.segments());
    std::uint32_t begin = 0;
    for (const cuda::JpegDeviceGroup& group : groups) {
      CHECK(group.begin == begin);
      for (std::uint32_t q = group.begin; q < group.end; ++q) REQUIRE(coding_of.at(queue[q]) == group.coding);
      begin = group.end;
    }
    CHECK(begin == batch.segments());
    std::vector<std::uint32_t> sorted(queue.begin(), queue.end());
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::uint32_t> all(batch.segments());
    std::iota(all.begin(), all.end(), 0U);
    CHECK(sorted == all);
  }
}

TEST_CASE("damaged tables keep a level's tiles from the device") {
  const Bytes cut = {std::byte{0xFF}, std::byte{0xD8}, std::byte{0xFF}, std::byte{0xC4}, std::byte{1}};
  Bytes damaged = cut;
  damaged.resize(40);
  const JpegLevelTables tables(damaged);
  CHECK(tables.reason == JpegReason::damaged_header);
  CHECK(JpegLevelTables(cut).reason == JpegReason::none);  // too short to hold a table
  OwnBatch own(roomy);
  const NamedTile tile = make_tile(16, 16, {}, 1);
  CHECK(own.batch.add(tile.bytes, 0, tables, whole_tile(tile.colour, 16, 16),
                      {.pitch = 16, .width = 16, .height = 16}) == JpegReason::damaged_header);
}

}  // namespace
}  // namespace slidestream::test
