#include "planning/tile_ranges.hpp"

#include <doctest/doctest.h>

#include <vector>

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
