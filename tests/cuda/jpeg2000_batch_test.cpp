// What the host tells the device of a batch of JPEG 2000 tiles, and what doesn't get into one.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cuda/jpeg2000/jpeg2000_batch.hpp"
#include "cuda/jpeg2000_tiles.hpp"
#include "slide/test_images.hpp"
#include "support/host_coders/jpeg2000_decoder.hpp"

namespace slidestream::test {
namespace {

using cuda::Jpeg2000Reason;

class TestBatch {
 public:
  explicit TestBatch(const cuda::Jpeg2000BatchLimits& limits)
      : memory_(cuda::Jpeg2000Batch::upload_bytes(limits) + 64), batch_(limits, aligned()) {}
  cuda::Jpeg2000Batch* operator->() { return &batch_; }
  const cuda::Jpeg2000Batch& operator*() const { return batch_; }

 private:
  std::span<std::byte> aligned() {
    const std::size_t shift = -reinterpret_cast<std::uintptr_t>(memory_.data()) % 64;
    return std::span(memory_).subspan(shift, memory_.size() - 64);
  }
  std::vector<std::byte> memory_;
  cuda::Jpeg2000Batch batch_;
};

TileDemand demand_for_whole(const NamedTile& tile) {
  return whole_tile(tile.colour, tile.width, tile.height, luminance_format);
}

cuda::JpegPlacement whole_placement(const NamedTile& tile) {
  return {0, 300, 0, 0, static_cast<std::uint32_t>(tile.width), static_cast<std::uint32_t>(tile.height)};
}

TEST_CASE("a batch of JPEG 2000 tiles is decoded from what the device is told (long)") {
  const std::vector<NamedTile> tiles = jpeg2000_tiles_of_every_kind({.most = 39});
  cuda::Jpeg2000BatchLimits limits{.tiles = 64, .compressed_bytes = 64U << 20, .codings = 64};
  TestBatch batch(limits);
  cuda::HostJpeg2000Decoder decoder;
  std::mt19937 random(7);
  // The second time, with what is left of the first.
  for (int round = 0; round < 2; ++round) {
    batch->clear();
    std::vector<std::byte> compressed;
    std::vector<std::size_t> added;
    constexpr std::size_t pitch = 300, tile_bytes = pitch * cuda::small_jpeg2000_side;
    for (std::size_t i = 0; i < tiles.size() && added.size() < 40; i += 2) {
      // Each twice: the second has the main header of the first.
      for (int again = 0; again < 2; ++again) {
        cuda::JpegPlacement placement = whole_placement(tiles[i]);
        placement.offset = added.size() * tile_bytes;
        if (again == 1) {
          placement.from_x = static_cast<std::uint32_t>(random() % placement.width);
          placement.from_y = static_cast<std::uint32_t>(random() % placement.height);
          placement.width -= placement.from_x;
          placement.height -= placement.from_y;
        }
        REQUIRE(batch->add(tiles[i].bytes, compressed.size(), demand_for_whole(tiles[i]), placement) ==
                Jpeg2000Reason::none);
        compressed.insert(compressed.end(), tiles[i].bytes.begin(), tiles[i].bytes.end());
        added.push_back(i);
      }
    }
    compressed.resize((compressed.size() + 15) / 16 * 16);
    std::vector<std::uint8_t> plane(added.size() * tile_bytes, 0xA5);
    random.seed(7);
    for (std::uint32_t number = 0; number < added.size(); ++number) {
      const NamedTile& tile = tiles[added[number]];
      CAPTURE(tile.name);
      REQUIRE(decoder.decode(plane.data(), *batch, number, compressed) == Jpeg2000Reason::none);
      const auto expected = decode_with_openjpeg(tile.bytes, demand_for_whole(tile));
      REQUIRE(expected.has_value());
      const auto width = static_cast<std::size_t>(tile.width), height = static_cast<std::size_t>(tile.height);
      const std::size_t from_x = number % 2 == 0 ? 0 : random() % width,
                        from_y = number % 2 == 0 ? 0 : random() % height;
      bool equal = true;
      for (std::size_t y = from_y; y < height; ++y) {
        const auto* row = expected->data() + y * width;
        const auto* found = plane.data() + number * tile_bytes + (y - from_y) * pitch;
        equal = equal && std::equal(row + from_x, row + width, found) && found[width - from_x] == 0xA5;
      }
      CHECK(equal);
    }
    random.seed(7);
  }
}

TEST_CASE("a JPEG 2000 tile that finds no room, or isn't what is asked for, isn't added") {
  const std::vector<NamedTile> tiles = jpeg2000_tiles_of_every_kind({.most = 3});
  const NamedTile& tile = tiles[0];
  const TileDemand demand = demand_for_whole(tile);
  const auto add = [&](TestBatch& batch, const NamedTile& added, const cuda::JpegPlacement& placement) {
    return batch->add(added.bytes, 0, demand_for_whole(added), placement);
  };
  TestBatch one({.tiles = 1, .compressed_bytes = tile.bytes.size(), .codings = 1, .white_rectangles = 1});
  cuda::JpegPlacement outside = whole_placement(tile);
  outside.from_x = 1;
  CHECK(add(one, tile, outside) == Jpeg2000Reason::size);
  CHECK(one->add(tile.bytes, 1, demand, whole_placement(tile)) == Jpeg2000Reason::no_room);
  TileDemand larger = demand;
  larger.inside_width = larger.width = tile.width + 1;
  CHECK(one->add(tile.bytes, 0, larger, whole_placement(tile)) == Jpeg2000Reason::size);
  CHECK(one->tiles() == 0);
  CHECK(add(one, tile, whole_placement(tile)) == Jpeg2000Reason::none);
  CHECK(add(one, tile, whole_placement(tile)) == Jpeg2000Reason::no_room);
  CHECK(one->add_white(whole_placement(tile)));
  CHECK_FALSE(one->add_white(whole_placement(tile)));
  CHECK(one->tiles() == 1);
  TestBatch few({.tiles = 8, .compressed_bytes = 1U << 20, .codings = 1, .parts = 3, .blocks = 100});
  CHECK(add(few, tile, whole_placement(tile)) == Jpeg2000Reason::none);
  CHECK(add(few, tiles[2], whole_placement(tiles[2])) == Jpeg2000Reason::no_room);  // another coding
  Jpeg2000Reason last = Jpeg2000Reason::none;
  while (last == Jpeg2000Reason::none) last = add(few, tile, whole_placement(tile));
  CHECK(last == Jpeg2000Reason::no_room);  // parts
  CHECK(few->tiles() == 3);
  TestBatch short_waves({.tiles = 8, .compressed_bytes = 1U << 20, .wave_bytes = tile.bytes.size() - 1});
  CHECK(add(short_waves, tile, whole_placement(tile)) == Jpeg2000Reason::no_room);
}

TEST_CASE("what is decoded of a JPEG 2000 tile follows from what its slide says, whatever came before") {
  NamedTile tile{"", encode_jpeg2000(make_picture(50, 40, 3, 1), {.colour_transform = false}), Colour::rgb, 50, 40};
  cuda::HostJpeg2000Decoder decoder;
  for (const bool rgb : {false, true}) {
    TestBatch batch({.tiles = 8,
                     .compressed_bytes = 1U << 20,
                     .format = rgb ? rgb_format : luminance_format,
                     .with_luminance = rgb,
                     .white_rectangles = 1});
    std::vector<std::byte> compressed = tile.bytes;
    compressed.resize((compressed.size() + 15) / 16 * 16);
    std::vector<std::uint8_t> plane(4 * 50 * 40, 0xA5);
    for (std::uint32_t i = 0; i < 6; ++i) {
      // Luminance of YCbCr is the first component, of RGB what three come to.
      tile.colour = i % 2 == 0 ? Colour::rgb : Colour::ycbcr;
      const std::uint32_t beside = rgb ? 3 * 50 * 40 : 0;
      REQUIRE(batch->add(tile.bytes, 0, demand_for_whole(tile), {0, rgb ? 150U : 50U, 0, 0, 50, 40, beside, 50}) ==
              Jpeg2000Reason::none);
      REQUIRE(decoder.decode(plane.data(), *batch, i, compressed) == Jpeg2000Reason::none);
      const auto luminance = decode_with_openjpeg(tile.bytes, demand_for_whole(tile));
      REQUIRE(luminance.has_value());
      CHECK(std::equal(luminance->begin(), luminance->end(), plane.begin() + beside));
      if (!rgb) continue;
      const auto colours = decode_with_openjpeg(tile.bytes, whole_tile(tile.colour, 50, 40, rgb_format));
      REQUIRE(colours.has_value());
      CHECK(std::equal(colours->begin(), colours->end(), plane.begin()));
    }
    CHECK(batch->codings() == (rgb ? 1 : 2));
    CHECK(batch->waves()[0].areas == (rgb ? 18 : 12));
    // Missing tiles are white in both.
    CHECK(batch->add_white({0, 150, 0, 0, 50, 40, 6000, 50}));
    CHECK(batch->white_rectangles() == (rgb ? 2 : 1));
    CHECK_FALSE(batch->add_white({0, 150, 0, 0, 50, 40, 6000, 50}));
  }
}

TEST_CASE("a large JPEG 2000 tile takes of a wave and of memory what it needs, or finds no room") {
  const NamedTile large = jpeg2000_large_tiles({.most = 1})[0];
  const NamedTile small = jpeg2000_tiles_of_every_kind({.most = 1})[0];
  REQUIRE(large.width == 512);
  const auto add = [](const cuda::Jpeg2000BatchLimits& limits, const std::vector<NamedTile>& tiles) {
    TestBatch batch(limits);
    for (const NamedTile& tile : tiles) {
      const auto width = static_cast<std::uint32_t>(tile.width), height = static_cast<std::uint32_t>(tile.height);
      const Jpeg2000Reason reason = batch->add(tile.bytes, 0, demand_for_whole(tile), {0, 600, 0, 0, width, height});
      CHECK((reason == Jpeg2000Reason::none || reason == Jpeg2000Reason::no_room));
    }
    std::vector<std::uint32_t> sizes;
    for (const cuda::Jpeg2000Wave& wave : batch->waves()) sizes.push_back(wave.tiles);
    return sizes;
  };
  using Sizes = std::vector<std::uint32_t>;
  const cuda::Jpeg2000BatchLimits limits{.tiles = 40, .compressed_bytes = 1U << 20};
  const std::vector<NamedTile> tiles = {large, small, large, small, large};
  CHECK(add(limits, tiles) == Sizes{5});
  cuda::Jpeg2000BatchLimits few = limits;
  few.areas = 9;
  CHECK(add(few, tiles) == Sizes{3, 2});
  few.areas = 3;
  CHECK(add(few, tiles) == Sizes{2});
  cuda::Jpeg2000BatchLimits little = limits;
  little.colour_tiles = 4;
  CHECK(add(little, tiles) == Sizes{2});
  cuda::Jpeg2000BatchLimits states = limits;
  states.state_words = 32;
  CHECK(add(states, tiles).empty());
}

TEST_CASE("a wave of JPEG 2000 tiles has as many as find room in it") {
  const NamedTile tile = jpeg2000_tiles_of_every_kind({.most = 1})[0];
  const auto waves_of = [&tile](cuda::Jpeg2000BatchLimits limits) {
    limits.tiles = 7;
    limits.compressed_bytes = 1U << 20;
    TestBatch batch(limits);
    std::vector<std::uint32_t> sizes;
    std::uint32_t next = 0;
    for (int round = 0; round < 2; ++round) {
      batch->clear();
      for (int i = 0; i < 7; ++i) {
        REQUIRE(batch->add(tile.bytes, 0, demand_for_whole(tile), whole_placement(tile)) == Jpeg2000Reason::none);
      }
      sizes.clear();
      next = 0;
      for (const cuda::Jpeg2000Wave& wave : batch->waves()) {
        CHECK(wave.first_tile == next);
        CHECK(wave.bytes == wave.tiles * tile.bytes.size());
        next += wave.tiles;
        sizes.push_back(wave.tiles);
      }
      CHECK(next == 7);
    }
    return sizes;
  };
  using Sizes = std::vector<std::uint32_t>;
  CHECK(waves_of({}) == Sizes{7});
  CHECK(waves_of({.wave_tiles = 3}) == Sizes{3, 3, 1});
  CHECK(waves_of({.wave_bytes = 2 * tile.bytes.size()}) == Sizes{2, 2, 2, 1});
  TestBatch one({.tiles = 1, .compressed_bytes = 1U << 20});
  REQUIRE(one->add(tile.bytes, 0, demand_for_whole(tile), whole_placement(tile)) == Jpeg2000Reason::none);
  CHECK(waves_of({.blocks = 4 * one->waves()[0].blocks}) == Sizes{4, 3});
}

}  // namespace
}  // namespace slidestream::test
