// Several images of a level's size in one TIFF file: the one that shows the slide is the level, wherever it stands.

#include <doctest/doctest.h>

#include <algorithm>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/tiff_fixture.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

constexpr std::int64_t slide_width = 1600;

/// Squares on the left of white glass. At a fourth of the size a square has 10 x 10 pixels.
int slide_at(std::int64_t x, std::int64_t y) { return x >= 800 ? 240 : (x / 40 + y / 40) % 2 == 0 ? 60 : 140; }

int mirrored_at(std::int64_t x, std::int64_t y) { return slide_at(slide_width - 1 - x, y); }

/// Bars of another scan.
int other_at(std::int64_t x, std::int64_t y) { return y / 16 % 3 == 1 && x / 48 % 2 == 0 ? 20 : 250; }

using Look = int (*)(std::int64_t, std::int64_t);

/// An image whose pixels are single ones of what is seen at the slide's size.
TestDirectory view(std::uint32_t width, std::uint32_t height, Look look) {
  constexpr std::uint32_t side = 64;
  TestDirectory directory = tiled_directory(width, height, side, side, 1);
  const std::int64_t factor = slide_width / width;
  for (std::uint32_t top = 0; top < height; top += side) {
    for (std::uint32_t left = 0; left < width; left += side) {
      Bytes tile(std::size_t{side} * side);
      for (std::uint32_t i = 0; i < side * side; ++i) {
        const std::int64_t x = (left + i % side) * factor + factor / 2;
        const std::int64_t y = (top + i / side) * factor + factor / 2;
        tile[i] = static_cast<std::byte>(look(std::min(x, slide_width - 1), y));
      }
      directory.tiles.push_back(std::move(tile));
    }
  }
  return directory;
}

const std::string second = "the image of 800 x 480 pixels has the size of a level before it: it isn't read";
const std::string unlike = " pixels isn't like the slide: it is no level";

class Fixture : public TiffFixture {
 public:
  /// Whether all levels show the slide, at some of their pixels.
  static bool shows_slide(const Slide& slide) {
    for (std::size_t level = 0; level < slide.info().levels.size(); ++level) {
      const std::vector<std::uint8_t> pixels = read_level(slide, level);
      const std::int64_t width = slide.info().levels[level].width;
      const std::int64_t factor = slide_width / width;
      for (std::size_t i = 0; i < pixels.size(); i += 997) {
        const auto at = static_cast<std::int64_t>(i);
        if (pixels[i] != slide_at(at % width * factor + factor / 2, at / width * factor + factor / 2)) return false;
      }
    }
    return true;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "of two pyramids of one size in a file the slide's own images are its levels") {
  tiff.directories = {view(1600, 960, slide_at), view(800, 480, other_at), view(800, 480, slide_at),
                      view(400, 240, other_at), view(400, 240, slide_at)};
  auto slide = open();
  CHECK(sizes_and_names(slide->info()) == "1600x960 800x480 400x240 | image of 800 x 480 image of 400 x 240");
  CHECK(slide->info().warnings == Lines{"the image of 800 x 480" + unlike, "the image of 400 x 240" + unlike});
  CHECK(shows_slide(*slide));
  CHECK(slide->info().levels[1].downsample == 2.0);
  CHECK(slide->info().levels[2].downsample == 4.0);
  CHECK(slide->read_associated(0).size.width == 800);
  CHECK(slide->read_associated(1).size.width == 400);
  // In another order for each size.
  std::swap(tiff.directories[1], tiff.directories[2]);
  slide = open();
  CHECK(sizes_and_names(slide->info()) == "1600x960 800x480 400x240 | image 2 image of 400 x 240");
  CHECK(slide->info().warnings == Lines{"the image of 400 x 240" + unlike, second});
  CHECK(shows_slide(*slide));
}

TEST_CASE_FIXTURE(Fixture, "the order of images of a level's size says nothing") {
  const std::vector<TestDirectory> images = {view(800, 480, slide_at), view(800, 480, other_at),
                                             view(800, 480, mirrored_at)};
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    CAPTURE(order[0]);
    CAPTURE(order[1]);
    tiff.directories = {view(1600, 960, slide_at)};
    for (const std::size_t i : order) tiff.directories.push_back(images[i]);
    const auto slide = open();
    CHECK(slide->info().levels.size() == 2);
    CHECK(slide->info().associated.size() == 2);
    CHECK(shows_slide(*slide));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE_FIXTURE(Fixture, "an image of a level's size that can't be read is none beside the level") {
  tiff.directories = {view(1600, 960, slide_at), view(800, 480, slide_at), view(800, 480, slide_at)};
  tiff.directories[2].set_short(259, 4);
  const auto slide = open();
  CHECK(sizes_and_names(slide->info()) == "1600x960 800x480 | image 2");
  CHECK(slide->info().warnings == Lines{second});
}

TEST_CASE_FIXTURE(Fixture, "further images of a level's size take nothing from what levels may have") {
  tiff.directories = {view(1600, 960, slide_at), view(800, 480, slide_at), view(800, 480, slide_at),
                      view(400, 240, slide_at)};
  OpenOptions options;
  options.max_tiles = 25 * 15 + 13 * 8 + 7 * 4;
  const auto slide = open(options);
  CHECK(sizes_and_names(slide->info()) == "1600x960 800x480 400x240 | image 2");
  CHECK(slide->info().warnings == Lines{second});
}

TEST_CASE_FIXTURE(Fixture, "of the images of a size four are looked at") {
  tiff.directories = {view(1600, 960, slide_at)};
  for (int i = 0; i < 3; ++i) tiff.directories.push_back(view(800, 480, other_at));
  tiff.directories.push_back(view(800, 480, slide_at));
  CHECK(sizes_and_names(open()->info()) == "1600x960 800x480 | image of 800 x 480 image 2 image 3");
  tiff.directories.insert(tiff.directories.begin() + 1, view(800, 480, other_at));
  const auto slide = open();
  CHECK(sizes_and_names(slide->info()) == "1600x960 | image 5 image of 800 x 480 image 2 image 3 image 4");
  REQUIRE(slide->info().warnings.size() == 5);
  CHECK(slide->info().warnings.front() == second);
  CHECK(slide->info().warnings.back() == "the image of 800 x 480" + unlike);
}
