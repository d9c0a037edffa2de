// A slide beside what a library that looks like OpenSlide makes of it.
#include <doctest/doctest.h>

#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>

#include "slide/loaded_openslide.hpp"
#include "slide/openslide/second_opinion.hpp"
#include "slide/test_tiff.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Verdict = SecondOpinion::Verdict;

/// What the library's pixels are over white.
TestDirectory view(std::uint32_t width, std::uint32_t height) {
  TestDirectory directory = tiled_directory(width, height, 64, 64, 3);
  for (std::uint32_t top = 0; top < height; top += 64) {
    for (std::uint32_t left = 0; left < width; left += 64) {
      Bytes tile;
      for (std::uint32_t i = 0; i < 64 * 64; ++i) {
        const std::uint32_t pixel = MadeUpOpenSlide::pixel(left + i % 64, top + i / 64);
        const std::uint32_t white = 255 - (pixel >> 24);
        for (const unsigned shift : {16U, 8U, 0U})
          tile.push_back(static_cast<std::byte>((pixel >> shift & 255) + white));
      }
      directory.tiles.push_back(std::move(tile));
    }
  }
  return directory;
}

class Fixture {
 public:
  Fixture() {
    library().takes_all = true;
    library().levels = {{600, 400, 1.0}, {300, 200, 2.0}};
    library().properties = {{"openslide.mpp-x", "0.25"}, {"openslide.mpp-y", "0.25"}};
    library().open_error.clear();
    library().bad_x = library().bad_y = -1;
    library().reads.clear();
    tiff.directories = {view(600, 400)};
    tiff.directories[0].set_text(270, "Aperio\n|MPP = 0.25");
  }
  ~Fixture() { library().takes_all = false; }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  SecondOpinion opinion() {
    const auto slide = Slide::open(folder.write("slide.tif", tiff.bytes()));
    return second_opinion(*slide, SLIDESTREAM_MADE_UP_OPENSLIDE);
  }
  std::string differs() {
    const SecondOpinion found = opinion();
    CHECK(found.verdict == Verdict::differs);
    const std::string begin = "differs from OpenSlide 4.9.made-up: ";
    CHECK(found.text.starts_with(begin));
    return found.text.substr(begin.size());
  }

  TemporaryFolder folder;
  TestTiff tiff;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "levels, pixel sizes and a hundred regions are compared, and agree") {
  library().levels = {{600, 400, 1.0}};
  const SecondOpinion found = opinion();
  CHECK(found.text == "agrees with OpenSlide 4.9.made-up: 1 level, mpp, 100 regions");
  CHECK(found.verdict == Verdict::agrees);
  CHECK(library().reads.size() == 100);
  // Its libtiff prints nothing beside that.
  CHECK_FALSE(library().prints_warnings);
  CHECK_FALSE(library().prints_errors);
  // What OpenSlide doesn't know, and resolutions for printing, are no differences.
  library().properties.clear();
  CHECK(opinion().verdict == Verdict::agrees);
  tiff.directories[0].remove(270);
  library().properties = {{"openslide.mpp-x", "352.8"}};
  CHECK(opinion().text == "agrees with OpenSlide 4.9.made-up: 1 level, 100 regions");
}

TEST_CASE_FIXTURE(Fixture, "the first difference is told with both values") {
  CHECK(differs() == "1 levels here, 2 there");
  library().levels = {{600, 401, 1.0}};
  CHECK(differs() == "level 0 is 600 x 400 here, 600 x 401 there");
  library().levels = {{600, 400, 1.0}};
  library().properties["openslide.mpp-y"] = "0,5";
  CHECK(differs() == "mpp_y is 0.25 here, 0.5 there");
  library().properties["openslide.mpp-x"] = "0.26";
  CHECK(differs() == "mpp is 0.25 here, 0.26 there");
  tiff.directories[0].remove(270);
  CHECK(differs() == "mpp is not known here, 0.26 there");
  library().properties.clear();
  library().bad_x = 300;
  library().bad_y = 200;
  CHECK(differs().ends_with(": read here, not read there (a bad tile)"));
  library().bad_x = library().bad_y = -1;
  for (Bytes& tile : tiff.directories[0].tiles) tile.assign(tile.size(), std::byte{100});
  const std::string pixels = differs();
  CHECK(pixels.starts_with("level 0 at "));
  CHECK(pixels.find(": 100,100,100 here, ") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "what OpenSlide doesn't take isn't compared") {
  library().takes_all = false;
  CHECK(opinion().verdict == Verdict::not_compared);
  CHECK(opinion().text == "not compared: OpenSlide 4.9.made-up: it doesn't recognise the file");
  const auto slide = Slide::open(folder.write("slide.tif", tiff.bytes()));
  CHECK_THROWS_AS(second_opinion(*slide, (folder / "missing.so").string()), ConfigError);
}
