// Images beside the slide in TIFF files: their names, and what can't be read.

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/decode_memory.hpp"
#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Names = std::vector<std::string>;

/// A slide with images behind it.
struct Fixture {
  Fixture() {
    tiff.directories = {tiled_directory(100, 60, 64, 64, 1)};
    tiff.directories[0].tiles.assign(2, Bytes(64 * 64));
  }
  TestDirectory& add(std::uint32_t width, std::uint32_t height, int samples) {
    tiff.directories.push_back(stripped_directory(width, height, height, samples));
    tiff.directories.back().tiles = {Bytes(std::size_t{width} * height * static_cast<std::size_t>(samples))};
    return tiff.directories.back();
  }
  std::shared_ptr<const Slide> open(const OpenOptions& options = {}) {
    return Slide::open(folder.write("slide.tif", tiff.bytes()), options);
  }

  TemporaryFolder folder;
  TestTiff tiff;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "images of one name get numbers, and each can be read") {
  for (std::uint32_t i = 0; i < 3; ++i) add(10 + i, 8, 1).set(254, long_, {4});
  for (std::uint32_t i = 0; i < 2; ++i) add(20 + i, 8, 1).set_text(270, "label");
  const auto slide = open();
  REQUIRE(slide->info().associated == Names{"mask", "mask 2", "mask 3", "label", "label 2"});
  const std::vector<std::int64_t> widths = {10, 11, 12, 20, 21};
  for (std::size_t i = 0; i < widths.size(); ++i) CHECK(slide->read_associated(i).size.width == widths[i]);
}

TEST_CASE_FIXTURE(Fixture, "an image beside the slide that can't be read says why") {
  // A mask of TIFF's own, of one bit per pixel.
  TestDirectory& mask = add(16, 8, 1).set(254, long_, {4}).set_short(258, 1).set_short(262, 4);
  mask.tiles = {Bytes(2 * 8)};
  CHECK_THROWS_WITH_AS(open()->read_associated(0), doctest::Contains("PhotometricInterpretation"), SlideError);
}

TEST_CASE_FIXTURE(Fixture, "alpha of images beside the slide is ignored: colours stay as stored") {
  const Picture colours = make_picture(16, 8, 4, 3);
  const Picture grey = make_picture(16, 8, 2, 4);
  for (const std::uint64_t alpha : {1, 2}) {
    CAPTURE(alpha);
    tiff.directories.resize(1);
    add(16, 8, 4).set_short(338, alpha).tiles = {to_bytes(colours)};
    add(16, 8, 2).set_short(338, alpha).tiles = {to_bytes(grey)};
    const auto slide = open();
    std::vector<std::uint8_t> expected, expected_grey;
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 16; ++x) {
        expected.insert(expected.end(), colours.at(x, y), colours.at(x, y) + 3);
        expected_grey.insert(expected_grey.end(), 3, *grey.at(x, y));
      }
    }
    CHECK(slide->read_associated(0).pixels == expected);
    CHECK(slide->read_associated(1).pixels == expected_grey);
  }
}

TEST_CASE_FIXTURE(Fixture, "an image beside the slide takes its memory from that for decoding") {
  add(1024, 1024, 3).set_text(270, "label");
  OpenOptions options;
  options.decode_memory = std::make_shared<DecodeMemory>(8U << 20);
  CHECK_THROWS_WITH_AS(
      open(options)->read_associated(0),
      doctest::Contains("the associated image label takes 23 MiB to read, and decoding may take 8 MiB"), SlideError);
  options.decode_memory = std::make_shared<DecodeMemory>(23U << 20);
  bool is_over = false;
  options.give_up = [&is_over] { return is_over; };
  const auto slide = open(options);
  CHECK(slide->read_associated(0).size == Size{1024, 1024});
  // All of it was given back, and who waits for it can be stopped.
  const DecodeMemory::Lease all = options.decode_memory->take(23U << 20, {});
  REQUIRE(static_cast<bool>(all));
  is_over = true;
  CHECK_THROWS_AS(slide->read_associated(0), StoppedError);
}

TEST_CASE_FIXTURE(Fixture, "strips of an image beside the slide that share bytes count each time") {
  TestDirectory& label = add(8, 1024, 1).set_text(270, "label").set(278, long_, {1});
  label.tiles = {Bytes(1U << 20)};
  label.set(279, long_, std::vector<std::uint64_t>(1024, 1U << 20));
  label.set(273, long_, std::vector<std::uint64_t>(1024, 8));
  CHECK_THROWS_WITH_AS(open()->read_associated(0), doctest::Contains("its parts have more than 2^29 bytes"),
                       SlideError);
}
