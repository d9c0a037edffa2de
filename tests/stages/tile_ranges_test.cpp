#include "planning/tile_ranges.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "planning/staging_plan.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;

TEST_CASE("reads of neighbouring tiles are merged, and every tile's bytes lie where its job says") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(300, 200, 1);
  test::write_test_slide(folder / "a.tif", image, {.missing = {3}});
  const auto slide = Slide::open(folder / "a.tif");
  const TileRanges ranges{*slide, 0};
  std::vector<BatchTile> tiles(
      static_cast<std::size_t>(slide->info().levels[0].columns * slide->info().levels[0].rows));
  for (std::size_t i = 0; i < tiles.size(); ++i) tiles[i].index = static_cast<std::int64_t>(i);
  std::vector<ReadChunk> chunks;
  constexpr std::size_t room = 1 << 20;
  plan_reads(chunks, tiles, ranges, 128, room);
  CHECK(chunks.size() == 1);

  std::vector<std::byte> slot(128 + room);
  for (const ReadChunk& chunk : chunks) {
    REQUIRE(chunk.slot_offset >= 128);
    REQUIRE(chunk.slot_offset + chunk.length <= slot.size());
    slide->read(chunk.file_offset, std::span(slot).subspan(chunk.slot_offset, chunk.length));
  }
  for (const BatchTile& tile : tiles) {
    const TileRange range = slide->tile(0, tile.index);
    if (tile.index == 3) {
      CHECK(tile.source == BatchTile::Source::missing);
      continue;
    }
    REQUIRE(tile.source == BatchTile::Source::file);
    REQUIRE(tile.length == range.length);
    std::vector<std::byte> direct(tile.length);
    slide->read(range.offset, direct);
    CHECK(std::equal(direct.begin(), direct.end(), slot.begin() + static_cast<std::ptrdiff_t>(tile.offset)));
  }
}

TEST_CASE("what planning reserves is enough for what reading takes") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(300, 200, 2);
  test::write_test_slide(folder / "a.tif", image, {.coding = test::Coding::lzw});
  const auto slide = Slide::open(folder / "a.tif");
  const TileRanges ranges{*slide, 0};
  const Level& level = slide->info().levels[0];
  std::vector<BatchTile> tiles(static_cast<std::size_t>(level.columns));
  for (std::size_t i = 0; i < tiles.size(); ++i) tiles[i].index = static_cast<std::int64_t>(i);
  std::vector<ReadChunk> chunks;
  const auto room = static_cast<std::size_t>(TileRanges::compressed_bytes(&ranges, 0, 0, level.columns));
  plan_reads(chunks, tiles, ranges, 1, room);
  for (const BatchTile& tile : tiles) CHECK(tile.offset + tile.length <= room + 1);
}

TEST_CASE("a length that no tile of that size can have makes the tile bad, not the slot too small") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(300, 300, 2);
  test::write_test_slide(folder / "a.tif", image, {.tile_width = 16, .tile_height = 16});
  std::filesystem::resize_file(folder / "a.tif", 4 << 20);
  const auto slide = Slide::open(folder / "a.tif");
  const TileRanges ranges{*slide, 0};
  constexpr std::uint64_t most = 16 * 16 * 16 + (1 << 20);
  CHECK(ranges.source_of({64, 256}) == BatchTile::Source::file);
  CHECK(ranges.source_of({64, most}) == BatchTile::Source::file);
  CHECK(ranges.source_of({64, most + 1}) == BatchTile::Source::too_long);
  CHECK(ranges.source_of({64, 5 << 20}) == BatchTile::Source::outside_file);
}

TEST_CASE("parts hold whole tiles, fit what they are read to, and together are all chunks") {
  // Chunks as plan_reads has them: gaps between tiles, and between chunks.
  const auto make = [](std::vector<ReadChunk>& chunks, std::vector<BatchTile>& tiles,
                       const std::vector<std::vector<std::size_t>>& lengths) {
    std::size_t slot = 64;
    std::uint64_t file = 1000;
    for (const std::vector<std::size_t>& of_chunk : lengths) {
      ReadChunk chunk{file, slot, 0, false};
      for (const std::size_t length : of_chunk) {
        BatchTile tile;
        tile.offset = slot;
        tile.length = length;
        tiles.push_back(tile);
        slot += length + 5;
      }
      chunk.length = slot - 5 - chunk.slot_offset;
      chunks.push_back(chunk);
      file += chunk.length + 200000;
      slot += 59;
    }
    // The order of tiles isn't that of their bytes, and some have none.
    std::ranges::reverse(tiles);
    tiles.push_back({});
    tiles.back().source = BatchTile::Source::missing;
  };
  const std::vector<std::vector<std::vector<std::size_t>>> cases = {
      {}, {{10}}, {{500, 500, 500}, {20}, {900, 950, 30}}, {{5000, 100, 2500}, {1, 1, 1, 1}}, {{1000, 1000}, {1000}}};
  for (const auto& lengths : cases) {
    for (const std::size_t most : {1000U, 1500U, 100000U}) {
      CAPTURE(most);
      std::vector<ReadChunk> whole;
      std::vector<BatchTile> tiles;
      make(whole, tiles, lengths);
      std::vector<ReadChunk> chunks = whole;
      std::vector<ReadPart> parts;
      std::vector<std::uint32_t> order;
      cut_parts(parts, chunks, order, tiles, most);
      CHECK(order.size() + 1 == tiles.size());
      std::size_t next = 0;
      std::size_t next_tile = 0;
      for (const ReadPart& part : parts) {
        CHECK(part.first == next);
        REQUIRE(part.end > part.first);
        CHECK(part.first_tile == next_tile);
        next = part.end;
        next_tile = part.end_tile;
        const std::size_t begin = chunks[part.first].slot_offset;
        const std::size_t end = chunks[part.end - 1].slot_offset + chunks[part.end - 1].length;
        CHECK(end - begin <= most);
        for (std::size_t i = part.first_tile; i < part.end_tile; ++i) {
          const BatchTile& tile = tiles[order[i]];
          CHECK(tile.offset >= begin);
          CHECK((tile.offset + tile.length <= end || tile.length > most));
        }
      }
      CHECK(next == chunks.size());
      CHECK(next_tile == order.size());
      // Every byte once, and from its place in the file.
      std::size_t piece = 0;
      for (const ReadChunk& chunk : whole) {
        std::size_t done = 0;
        for (; done < chunk.length; done += chunks[piece++].length) {
          REQUIRE(piece < chunks.size());
          CHECK(chunks[piece].slot_offset == chunk.slot_offset + done);
          CHECK(chunks[piece].file_offset == chunk.file_offset + done);
        }
        CHECK(done == chunk.length);
      }
      CHECK(piece == chunks.size());
    }
  }
}

TEST_CASE("GPUs share the memory that tiles pass through") {
  GpuConfig gpu;
  for (const std::size_t devices : {1U, 2U, 4U, 8U}) {
    for (const std::size_t cache_mib : {0U, 30U, 300U, 1000U}) {
      const StagingPlan plan = staging_plan(gpu, cache_mib << 20, devices);
      CHECK(plan.chunks >= 24);
      CHECK(plan.chunk_bytes >= std::size_t{2} << 20);
      CHECK(plan.chunk_bytes <= std::size_t{4} << 20);
      CHECK(plan.bytes() * devices <= std::size_t{384} << 20);
      CHECK(plan.bytes() * devices > std::size_t{60} << 20);
      CHECK(plan.bytes() >= std::size_t{48} << 20);
    }
  }
  CHECK(staging_plan(gpu, std::size_t{300} << 20, 1).bytes() == std::size_t{100} << 20);
  gpu.staging_mib = 1;
  CHECK(staging_plan(gpu, 0, 1).chunk_bytes == std::size_t{64} << 10);
  CHECK(staging_plan(gpu, 0, 1).chunks == 16);
  // No fewer than one of them.
  CHECK(staging_plan(gpu, 0, 64).chunks == 1);
}
