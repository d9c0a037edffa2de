#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>

#include "slide/test_images.hpp"
#include "slide/tile_file.hpp"

using namespace slidestream;
using namespace slidestream::test;

TEST_CASE("an Orientation that isn't 1 is refused by name, for every image that is used") {
  const auto level = [](std::uint32_t width, std::uint32_t height) {
    TestDirectory directory = tiled_directory(width, height, 64, 64, 3);
    directory.tiles.assign((width + 63) / 64 * ((height + 63) / 64), Bytes(64 * 64 * 3, std::byte{200}));
    return directory;
  };
  for (const std::uint64_t orientation : {0, 2, 3, 4, 5, 6, 7, 8, 9}) {
    const std::string expected = "Orientation " + std::to_string(orientation) + " isn't supported; supported: 1,";
    for (const bool of_smaller : {false, true}) {
      TileFile file(level(128, 128));
      file.tiff.directories.push_back(level(64, 64));
      file.tiff.directories[of_smaller ? 1 : 0].set_short(274, orientation);
      CHECK(file.error().find(expected) != std::string::npos);
    }
    TileFile file(level(128, 128));
    file.tiff.directories[0].subs = {level(64, 64).set_short(274, orientation)};
    CHECK(file.error().find(expected) != std::string::npos);
  }
  TileFile upright(level(128, 128).set_short(274, 1));
  CHECK(upright.error().empty());
}

TEST_CASE(
    "an image beside the slide is mirrored as its Orientation says, and refused where it would have to be turned") {
  const Picture picture = make_picture(30, 20, 3, 11);
  for (std::uint64_t orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    TileFile file(directory_of({encode_jpeg(make_stained_picture(64, 48, 12))}, ycbcr_tag));
    TestDirectory other = stripped_directory(30, 20, 20, 3).set_short(274, orientation);
    other.tiles = {to_bytes(picture)};
    file.tiff.directories.push_back(other);
    const auto slide = Slide::open(file.write());
    if (orientation > 4) {
      CHECK_THROWS_WITH_AS(slide->read_associated(0),
                           doctest::Contains(("its Orientation " + std::to_string(orientation)).c_str()), SlideError);
      continue;
    }
    Pixels expected;
    for (int y = 0; y < 20; ++y) {
      for (int x = 0; x < 30; ++x) {
        const bool right = orientation == 2 || orientation == 3, bottom = orientation >= 3;
        const std::uint8_t* from = picture.at(right ? 29 - x : x, bottom ? 19 - y : y);
        expected.insert(expected.end(), from, from + 3);
      }
    }
    CHECK(slide->read_associated(0).pixels == expected);
  }
}
