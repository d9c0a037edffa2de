// Tiles that a smaller level lacks although level 0 has them, and slides without tiles.

#include <doctest/doctest.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/test_images.hpp"
#include "slide/test_tiff.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

TestDirectory level_of(const Picture& picture, int side) {
  TestDirectory directory =
      tiled_directory(static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height),
                      static_cast<std::uint32_t>(side), static_cast<std::uint32_t>(side), picture.samples);
  for (int y = 0; y < picture.height; y += side) {
    for (int x = 0; x < picture.width; x += side) directory.tiles.push_back(to_bytes(cut(picture, x, y, side, side)));
  }
  return directory;
}

/// Level 0 has 3 x 3 tiles of 32 pixels. Level 1 has 2 x 2 of 16, over 64 pixels of level 0 and the rest.
class LostTiles {
 public:
  std::shared_ptr<const Slide> open(std::initializer_list<std::size_t> of_level0,
                                    std::initializer_list<std::size_t> of_level1) {
    const Picture picture = make_stained_picture(96, 96, 1);
    TestTiff tiff;
    tiff.directories = {level_of(picture, 32), level_of(reduced(picture, 4), 16)};
    for (const std::size_t i : of_level0) tiff.directories[0].tiles.at(i).clear();
    for (const std::size_t i : of_level1) tiff.directories[1].tiles.at(i).clear();
    auto slide = Slide::open(folder.write("slide.tif", tiff.bytes()));
    REQUIRE(slide->info().levels.size() == 2);
    REQUIRE(slide->info().levels[1].columns == 2);
    return slide;
  }

  TemporaryFolder folder;
};

}  // namespace

TEST_CASE_FIXTURE(LostTiles, "tiles that a smaller level lacks and level 0 has are counted when a slide is opened") {
  const auto slide = open({}, {1, 3});
  CHECK(count_lost_tiles(*slide, 0) == 0);
  CHECK(count_lost_tiles(*slide, 1) == 2);
  CHECK(slide->info().warnings == Lines{"smaller levels lack tiles that level 0 has: 2 in level 1; they are white "
                                        "there, and count as glass where tissue is found"});
  CHECK(open({}, {})->info().warnings == Lines{});
}

TEST_CASE_FIXTURE(LostTiles, "tiles that are blank in all levels may be left out") {
  // Tile 3 of level 1 lies over tile 8 of level 0 alone.
  auto slide = open({8}, {3});
  CHECK(count_lost_tiles(*slide, 0) == 1);
  CHECK(count_lost_tiles(*slide, 1) == 0);
  CHECK(slide->info().warnings == Lines{});
  // Tile 1 lies over 2 and 5.
  slide = open({2, 5, 8}, {1, 3});
  CHECK(count_lost_tiles(*slide, 1) == 0);
  CHECK(slide->info().warnings == Lines{});
  slide = open({2, 8}, {1, 3});
  CHECK(count_lost_tiles(*slide, 1) == 1);
  CHECK(slide->info().warnings.size() == 1);
  // The other way round the larger level alone lacks it.
  CHECK(open({8}, {})->info().warnings == Lines{});
}

TEST_CASE("a slide that has none of its tiles gets a line when it is opened") {
  const TemporaryFolder folder;
  TestTiff tiff;
  tiff.directories = {level_of(make_stained_picture(96, 96, 1), 32)};
  std::vector<Bytes>& tiles = tiff.directories[0].tiles;
  REQUIRE(tiles.size() == 9);
  const auto warnings = [&] { return Slide::open(folder.write("slide.tif", tiff.bytes()))->info().warnings; };
  for (std::size_t i = 0; i < 8; ++i) tiles[i].clear();
  CHECK(warnings() == Lines{});
  tiles[8].clear();
  CHECK(warnings() == Lines{"level 0 lacks all of its tiles (9): the slide is white"});
  // Nothing tells what the other page shows.
  tiff.directories.push_back(level_of(make_stained_picture(48, 48, 1), 32));
  CHECK(warnings() == Lines{"the image of 48 x 48 pixels isn't like the slide: it is no level",
                            "level 0 lacks all of its tiles (9): the slide is white"});
}
