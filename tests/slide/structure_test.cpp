// Which directory of a TIFF file is what: the rules of docs/formats.md, and files that contradict themselves.

#include <doctest/doctest.h>

#include <algorithm>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/structure_fixture.hpp"

using namespace slidestream;
using namespace slidestream::test;

TEST_CASE_FIXTURE(StructureFixture,
                  "a thumbnail of another scale that is tiled like a level is none, wherever it stands") {
  const std::vector<TestDirectory> pyramid = {view(1600, 960), view(800, 480), view(400, 240)};
  for (std::size_t place = 0; place <= 3; ++place) {
    CAPTURE(place);
    for (const TestDirectory& thumbnail : {label(210, 120), label(210, 126), view(210, 126), view(320, 192)}) {
      tiff.directories = pyramid;
      tiff.directories.insert(tiff.directories.begin() + static_cast<std::ptrdiff_t>(place), thumbnail);
      for (const std::uint64_t type : {0, 1}) {
        tiff.directories[place].set(254, long_, {type});
        CHECK(found() == "1600x960 800x480 400x240 | image " + std::to_string(place));
        CHECK(warnings().empty());
      }
    }
  }
}

TEST_CASE_FIXTURE(StructureFixture, "several small images of the slide's shape that are no levels get a line") {
  const std::string lost = " pixels has the slide's shape, but is no level of it: it isn't read";
  tiff.directories = {view(1600, 960), view(640, 384), view(256, 154)};
  CHECK(found() == "1600x960 | image 1 image 2");
  CHECK(warnings() == Lines{"the image of 640 x 384" + lost + ", nor 1 more of them"});
  // Behind levels, too; one of a level's size has its own line, and one of another shape is no level anyway.
  tiff.directories = {view(1600, 960), view(800, 480), view(640, 384), view(256, 154), view(100, 154)};
  CHECK(found() == "1600x960 800x480 | image 2 image 3 image 4");
  CHECK(warnings() == Lines{"the image of 640 x 384" + lost + ", nor 1 more of them"});
  tiff.directories = {view(1600, 960), view(640, 384), view(640, 384)};
  CHECK(warnings().empty());
}

TEST_CASE_FIXTURE(StructureFixture, "levels of plain TIFF are found by their sizes, whatever their order and types") {
  const std::vector<TestDirectory> pyramid = {view(1600, 960), view(800, 480), view(400, 240), view(200, 120)};
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    tiff.directories.clear();
    for (const std::size_t i : order) tiff.directories.push_back(pyramid[i]);
    CHECK(found() == "1600x960 800x480 400x240 200x120 |");
    // Types that are wrong: the slide is called reduced, and no level is.
    for (std::size_t i = 0; i < 4; ++i) tiff.directories[i].set(254, long_, {order[i] == 0 ? 1U : 0U});
    CHECK(found() == "1600x960 800x480 400x240 200x120 |");
  } while (std::next_permutation(order.begin(), order.end()));
  // The largest is the slide even if it is called a mask or a macro image.
  for (const std::uint64_t type : {4, 8, 9}) {
    tiff.directories = pyramid;
    tiff.directories[0].set(254, long_, {type});
    CHECK(found() == "1600x960 800x480 400x240 200x120 |");
    std::swap(tiff.directories[0], tiff.directories[2]);
    CHECK(found() == "1600x960 800x480 400x240 200x120 |");
  }
}

TEST_CASE_FIXTURE(StructureFixture, "an image of one colour is a level only where the slide has that colour") {
  const auto plain = [](std::uint32_t width, std::uint32_t height, int colour) {
    TestDirectory directory = view(width, height);
    for (Bytes& tile : directory.tiles) std::ranges::fill(tile, static_cast<std::byte>(colour));
    return directory;
  };
  tiff.directories = {view(1600, 960), plain(400, 240, 20), view(800, 480)};
  CHECK(found() == "1600x960 800x480 | image of 400 x 240");
  CHECK(warnings() == Lines{"the image of 400 x 240 pixels isn't like the slide: it is no level"});
  tiff.directories = {plain(1600, 960, 240), plain(800, 480, 241), plain(400, 240, 239)};
  CHECK(found() == "1600x960 800x480 400x240 |");
  // Where nothing is, nothing tells what the others show.
  for (Bytes& tile : tiff.directories[0].tiles) tile.clear();
  CHECK(found() == "1600x960 | image of 800 x 480 image of 400 x 240");
}

TEST_CASE_FIXTURE(StructureFixture, "an image whose size can't be read may be the slide, and no other passes for it") {
  const auto make = [this](std::size_t damaged, std::uint16_t tag) {
    tiff.directories = {view(1600, 1200), view(800, 600), strips(200, 150)};
    tiff.directories[damaged].remove(tag);
  };
  make(0, 256);
  CHECK(error().find("directory 0: ImageWidth is missing") != std::string::npos);
  make(1, 257);
  CHECK(error().find("directory 1: ImageLength is missing") != std::string::npos);
  tiff.directories[1].set(257, long_, {600, 600});
  CHECK(error().find("directory 1: ImageLength has 2 values, expected 1") != std::string::npos);
  tiff.directories[1].set(257, long_, {0});
  CHECK(error().find("directory 1: ImageLength is 0") != std::string::npos);
  // Strips beside tiles aren't the slide.
  make(2, 256);
  CHECK(found() == "1600x1200 800x600 | image 2");
  CHECK(warnings() == Lines{"directory 2: ImageWidth is missing: it is no level"});
  // Without tiles they may be.
  tiff.directories = {strips(1600, 1200), strips(200, 150)};
  tiff.directories[0].remove(256);
  CHECK(error().find("directory 0: ImageWidth is missing") != std::string::npos);
  // A level among SubIFDs is missed with a line.
  tiff.directories = {view(1600, 1200)};
  tiff.directories[0].subs = {view(800, 600), view(400, 300)};
  tiff.directories[0].subs[0].remove(256);
  CHECK(found() == "1600x1200 400x300 |");
  CHECK(warnings() == Lines{"SubIFD 0: ImageWidth is missing: it is no level"});
}

TEST_CASE_FIXTURE(StructureFixture, "a mask as large as the slide isn't the slide") {
  tiff.directories = {view(1600, 960), view(1600, 960), view(800, 480)};
  tiff.directories[0].set(254, long_, {4});
  std::swap(tiff.directories[0], tiff.directories[2]);
  CHECK(found() == "1600x960 800x480 | mask");
  // In the first directory, too, and by PhotometricInterpretation alone.
  std::swap(tiff.directories[0], tiff.directories[2]);
  CHECK(found() == "1600x960 800x480 | mask");
  tiff.directories[0].remove(254).set_short(262, 4);
  CHECK(found() == "1600x960 800x480 | mask");
  std::swap(tiff.directories[0], tiff.directories[1]);
  CHECK(found() == "1600x960 800x480 | mask");
}

TEST_CASE_FIXTURE(StructureFixture, "strips of another image that are larger than the slide's tiles aren't the slide") {
  tiff.directories = {view(400, 240), strips(1280, 430), strips(1024, 768)};
  tiff.directories[0].set_text(270, "Aperio Image Library v1\r\n400x240 (64x64)|MPP = 0.25");
  tiff.directories[1].set_text(270, "Aperio Image Library v1\r\nmacro 1280x430");
  CHECK(found() == "400x240 | macro image 2");
  tiff.directories[0].remove(270);
  tiff.directories.pop_back();
  CHECK(found() == "400x240 | macro");
}

TEST_CASE_FIXTURE(StructureFixture, "tiles may differ between levels") {
  tiff.directories = {view(1600, 960, true, 64), view(800, 480, true, 128), view(400, 240, true, 32)};
  CHECK(found() == "1600x960 800x480 400x240 |");
  const auto slide = open();
  for (std::size_t level = 0; level < 3; ++level) {
    const std::vector<std::uint8_t> pixels = read_level(*slide, level);
    const std::int64_t width = slide->info().levels[level].width;
    for (std::size_t i = 0; i < pixels.size(); i += 997) {
      const auto at = static_cast<std::int64_t>(i);
      REQUIRE(pixels[i] ==
              slide_at(at % width, at / width, static_cast<double>(slide_width) / static_cast<double>(width)));
    }
  }
}

TEST_CASE_FIXTURE(StructureFixture, "of two pyramids in one file the larger is read, and a line names the other") {
  tiff.directories = {label(1200, 960), label(600, 480), label(300, 240),
                      view(1600, 960),  view(800, 480),  view(400, 240)};
  CHECK(found() == "1600x960 800x480 400x240 | image 0 image 1 image 2");
  const std::string unread = "the image of 1200 x 960 pixels is no level of the slide: it isn't read";
  CHECK(warnings() == Lines{unread + ", nor 2 smaller"});
  for (std::uint32_t i = 0; i < 20; ++i) tiff.directories.push_back(label(1100 + i, 960));
  CHECK(warnings() == Lines{unread + ", nor 20 more so large, nor 2 smaller"});
  // Of one size they may be channels: one has to be chosen.
  tiff.directories = {label(1600, 960), label(800, 480), view(1600, 960), view(800, 480)};
  CHECK(error().ends_with("has 2 channels; set input.channel to choose one, 0 to 1"));
}

TEST_CASE_FIXTURE(StructureFixture, "beside SubIFDs no image of the main chain is a level") {
  tiff.directories = {view(1600, 960), view(200, 120), label(400, 240)};
  tiff.directories[0].subs = {view(800, 480)};
  CHECK(found() == "1600x960 800x480 | image 1 image 2");
  const std::string told = " pixels has the size of a level, but the slide's levels are SubIFDs: it is no level";
  CHECK(warnings() == Lines{"the image of 400 x 240" + told, "the image of 200 x 120" + told});
  // SubIFDs that are no levels leave them.
  tiff.directories[0].subs = {view(333, 480)};
  CHECK(found().starts_with("1600x960 200x120 |"));
  // SubIFDs of an image that isn't the slide are none of it.
  tiff.directories = {label(210, 120), view(1600, 960)};
  tiff.directories[0].subs = {view(800, 480)};
  CHECK(found() == "1600x960 | image 0");
}

TEST_CASE_FIXTURE(StructureFixture, "a SubIFD at byte 0 is none") {
  tiff.directories = {view(1600, 960)};
  tiff.directories[0].set(330, long_, {0});
  CHECK(found() == "1600x960 |");
  CHECK(warnings() == Lines{});
  // Nor is it one of several, and what is in the main chain are levels then.
  tiff.directories = {view(1600, 960), view(800, 480)};
  tiff.directories[0].set(330, long_, {0, 0});
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings() == Lines{});
  // Another place outside the file is damage.
  tiff.directories[0].set(330, long_, {0, 1U << 30});
  CHECK(error().find("lies outside the file") != std::string::npos);
}

TEST_CASE_FIXTURE(StructureFixture, "a SubIFD leads to others, each of which counts once") {
  tiff.directories = {view(1600, 960)};
  TestDirectory& base = tiff.directories[0];
  base.subs = {view(800, 480), view(400, 240), view(333, 480), view(200, 120)};
  base.chained = true;
  const std::string all = "1600x960 800x480 400x240 200x120 |";
  const std::string other = "the image of 333 x 480 pixels is a SubIFD and no level of the slide: it isn't read";
  for (const bool big : {false, true}) {
    tiff.big = big;
    tiff.big_endian = big;
    CHECK(found() == all);
    CHECK(warnings() == Lines{other});
  }
  // It ends where it comes to one of its own.
  for (const int to : {0, 2, 3}) {
    base.chain_to = to;
    CHECK(found() == all);
    CHECK(warnings() == Lines{other});
  }
  base.chain_to = -1;
  base.chain_end = 1U << 30;
  CHECK(found() == all);
  CHECK(warnings() == Lines{"a SubIFD leads to what is no directory: it is passed over", other});
}

TEST_CASE_FIXTURE(StructureFixture, "SubIFDs that are no levels get a line") {
  tiff.directories = {view(1600, 960)};
  TestDirectory& base = tiff.directories[0];
  const std::string line = " pixels is a SubIFD and no level of the slide: it isn't read";
  // By its shape, by its name, and beside another of its size.
  base.subs = {view(800, 480), view(100, 240)};
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings() == Lines{"the image of 100 x 240" + line});
  base.subs = {view(800, 480), label(400, 240).set_text(270, "label")};
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings() == Lines{"the image of 400 x 240" + line});
  base.subs = {view(800, 480), view(800, 480), strips(400, 240), view(100, 240)};
  CHECK(found() == "1600x960 800x480 |");
  const std::string in_strips = " pixels is a SubIFD in strips, and levels need tiles: it isn't read";
  CHECK(warnings() ==
        Lines{"the image of 800 x 480" + line + ", nor 1 more of them", "the image of 400 x 240" + in_strips});
  base.subs = {strips(800, 480), view(400, 240), strips(200, 120)};
  CHECK(found() == "1600x960 400x240 |");
  CHECK(warnings() == Lines{"the image of 800 x 480" + in_strips + ", nor 1 more of them"});
  // Strips of another shape aren't left out because they are strips.
  base.subs = {view(800, 480), strips(100, 240)};
  CHECK(warnings() == Lines{"the image of 100 x 240" + line});
  // What has no size has a line of its own.
  base.subs = {view(800, 480), view(100, 240)};
  base.subs[1].remove(256);
  CHECK(warnings() == Lines{"SubIFD 1: ImageWidth is missing: it is no level"});
}

TEST_CASE_FIXTURE(StructureFixture, "a level that stands among the SubIFDs and in the main chain is one level") {
  tiff.directories = {view(1600, 960), view(800, 480)};
  tiff.directories[0].subs = {view(800, 480)};
  const std::size_t tiles = tiff.directories[1].tiles.size();
  CHECK(warnings() ==
        Lines{"the image of 800 x 480 pixels has the size of a level, but the slide's levels are SubIFDs: "
              "it is no level"});
  // The main chain's directory gets the places of the other one's tiles, which are the file's first.
  std::vector<std::uint64_t> offsets(tiles);
  for (std::size_t i = 0; i < tiles; ++i) offsets[i] = 8 + i * 64 * 64;
  tiff.directories[1].set(324, long_, offsets).set(325, long_, std::vector<std::uint64_t>(tiles, 64 * 64));
  tiff.directories[1].tiles.clear();
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings().empty());
}
