// Images of a TIFF file that no directory of the main chain shows, and that aren't read: planes behind each other,
// files beside it, SubIFDs of what isn't level 0.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/test_images.hpp"
#include "slide/test_tiff.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

constexpr std::uint32_t side = 32;

/// One tile of zeros.
TestDirectory small(int samples = 1) {
  TestDirectory directory = tiled_directory(side, side, side, side, samples);
  directory.tiles = {Bytes(static_cast<std::size_t>(samples) * side * side)};
  return directory;
}

class Fixture {
 public:
  std::filesystem::path write(std::vector<TestDirectory> directories, const std::string& name = "slide.tif") const {
    return folder.write(name, TestTiff{.directories = std::move(directories)}.bytes());
  }

  TemporaryFolder folder;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "planes that a program's own tag counts are found under their directory") {
  const auto file_with = [&](const std::function<void(TestDirectory&)>& describe, std::size_t planes) {
    TestDirectory directory = small();
    describe(directory);
    Bytes bytes = TestTiff{.directories = {directory}}.bytes();
    bytes.resize(bytes.size() + (planes - 1) * side * side);
    return folder.write("stack.stk", bytes);
  };
  const auto metamorph = [](std::size_t planes) {
    return [planes](TestDirectory& to) { to.set(33629, rational, std::vector<std::uint64_t>(planes, 1)); };
  };
  const auto nih_image = [](std::uint64_t planes) {
    // A big-endian number in a little-endian file.
    std::vector<std::uint64_t> header(256);
    header[130] = planes << 8;
    return [header](TestDirectory& to) { to.set(43314, short_, header); };
  };
  const std::string ending =
      "), of which the first can be read; set input.channel to 0 for it, or write a directory for each";
  CHECK(open_error(file_with(metamorph(3), 3))
            .ends_with("has 3 planes under one directory (tag 33629, UIC2Tag of MetaMorph" + ending));
  CHECK(read_level(*Slide::open(file_with(metamorph(3), 3), {.channel = 0})).size() == side * side);
  CHECK(open_error(file_with(nih_image(4), 4))
            .ends_with("has 4 planes under one directory (tag 43314, NIH Image's header" + ending));
  // Of one plane, and one that was taken out of a stack.
  CHECK(open_error(file_with(metamorph(1), 2)).empty());
  CHECK(open_error(file_with(metamorph(3), 1)).empty());
  CHECK(open_error(file_with(nih_image(1), 2)).empty());
  CHECK(open_error(file_with(nih_image(0), 2)).empty());
}

TEST_CASE_FIXTURE(Fixture, "a line says what a Zeiss LSM file's tag has beyond what is read") {
  const auto lines = [&](int samples, std::uint8_t depths, std::uint8_t channels, std::uint8_t times) {
    Bytes tag(32);
    tag[0] = std::byte{0x94};
    tag[1] = std::byte{0x04};
    tag[2] = std::byte{0x40};
    tag[16] = std::byte{depths};
    tag[20] = std::byte{channels};
    tag[24] = std::byte{times};
    return Slide::open(write({small(samples).set_bytes(34412, tag)}))->info().warnings;
  };
  CHECK(lines(1, 1, 1, 1).empty());
  CHECK(lines(3, 1, 3, 1) ==
        Lines{"its 3 channels (tag 34412, Zeiss LSM) are read as red, green and blue, as the other tags say"});
  CHECK(lines(1, 5, 1, 2) == Lines{"its tag 34412 (Zeiss LSM) says 10 planes, and 1 directory has the slide's size"});
}

TEST_CASE_FIXTURE(Fixture, "the overview of an Olympus slide isn't read as the slide") {
  const Lines alone = {
      "an Olympus .vsi file without its folder _Image_ of .ets files: what is read may be an overview of the slide"};
  for (const char* const name : {"Image.vsi", "Image.VSI"}) {
    const std::filesystem::path path = write({small()}, name);
    std::filesystem::remove_all(folder / "_Image_");
    CHECK(Slide::open(path)->info().warnings == alone);
    std::filesystem::create_directories(folder / "_Image_/stack1");
    CHECK(Slide::open(path)->info().warnings == alone);
    folder.write("_Image_/stack1/frame_t.ets", std::string("SIS"));
    CHECK(open_error(path).ends_with(
        ": is the overview of an Olympus slide, whose pixels lie in .ets files in the folder _Image_ beside it; "
        "slidestream doesn't read them"));
  }
  CHECK(Slide::open(write({small()}, "Image.tif"))->info().warnings.empty());
}

TEST_CASE_FIXTURE(Fixture, "SubIFDs of images that aren't level 0 get a line") {
  const auto check = [&](std::vector<TestDirectory> directories, std::size_t levels, const Lines& lines) {
    const SlideInfo info = Slide::open(write(std::move(directories)))->info();
    CHECK(info.levels.size() == levels);
    CHECK(info.warnings == lines);
  };
  const std::string line = "the SubIFDs of the image of 800 x 480 pixels aren't read, as it isn't level 0";
  TestDirectory half = chequered_directory(800, 480);
  half.subs = {chequered_directory(400, 240)};
  check({chequered_directory(1600, 960), half}, 2, {line});
  TestDirectory quarter = chequered_directory(400, 240);
  quarter.subs = {chequered_directory(200, 120)};
  TestDirectory base = chequered_directory(1600, 960);
  base.subs = {half, quarter};
  check({base}, 3, {line + ", nor are those of 1 more"});
  base.subs = {chequered_directory(800, 480), chequered_directory(400, 240)};
  check({base}, 3, {});
}

TEST_CASE_FIXTURE(Fixture, "a SubIFD without pixels isn't called one in strips") {
  TestDirectory empty = stripped_directory(800, 480, 480, 1);
  empty.remove(273).remove(279);
  TestDirectory strips = stripped_directory(200, 120, 120, 1);
  strips.tiles = {Bytes(200 * 120)};
  TestDirectory base = chequered_directory(1600, 960);
  base.subs = {empty, chequered_directory(400, 240), strips};
  CHECK(Slide::open(write({base}))->info().warnings ==
        Lines{"the image of 800 x 480 pixels is a SubIFD without tiles or strips: it isn't read",
              "the image of 200 x 120 pixels is a SubIFD in strips, and levels need tiles: it isn't read"});
}
