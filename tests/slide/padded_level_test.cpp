// Levels whose right and lower borders are padded to whole tiles, and pictures that were resized to such sizes.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
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

constexpr int side = 64;  ///< of tiles

/// Squares of 10 pixels, each of a grey that says nothing of those beside it.
Picture squares(int width, int height) {
  Picture picture{width, height, 1, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      auto value = static_cast<std::uint32_t>(x / 10) * 73856093U ^ static_cast<std::uint32_t>(y / 10) * 19349663U;
      value ^= value >> 13;
      value *= 0x5bd1e995U;
      value ^= value >> 15;
      picture.data.push_back(static_cast<std::uint8_t>(40 + value % 180));
    }
  }
  return picture;
}

/// Single pixels, `across` and `down` apart.
Picture sampled(const Picture& picture, int width, int height, double across, double down, double phase) {
  Picture made{width, height, 1, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      made.data.push_back(*picture.at(static_cast<int>((x + phase) * across), static_cast<int>((y + phase) * down)));
    }
  }
  return made;
}

int in_whole_tiles(int size) { return (size + side - 1) / side * side; }

/// An image of this size, whose last pixels are repeated up to it.
TestDirectory image(const Picture& picture, int width, int height) {
  TestDirectory directory =
      tiled_directory(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), side, side, 1);
  for (int y = 0; y < height; y += side) {
    for (int x = 0; x < width; x += side) directory.tiles.push_back(to_bytes(cut(picture, x, y, side, side)));
  }
  return directory;
}

TestDirectory padded(const Picture& picture) {
  return image(picture, in_whole_tiles(picture.width), in_whole_tiles(picture.height));
}

std::shared_ptr<const Slide> open_slide(const TemporaryFolder& folder, const Picture& base,
                                        std::vector<TestDirectory> levels) {
  TestTiff tiff;
  tiff.directories = {image(base, base.width, base.height)};
  tiff.directories[0].subs = std::move(levels);
  return Slide::open(folder.write("slide.tif", tiff.bytes()));
}

std::string sizes(const Slide& slide) {
  std::string text;
  for (const Level& level : slide.info().levels) {
    text += std::to_string(level.width) + "x" + std::to_string(level.height) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("levels that are padded to whole tiles are cut, and their factors are whole") {
  const TemporaryFolder folder;
  const Picture base = squares(1990, 1510);
  const auto slide = open_slide(folder, base, {padded(reduced(base, 2)), padded(reduced(base, 4))});
  CHECK(sizes(*slide) == "1990x1510 995x755 498x378 ");
  CHECK(slide->info().warnings ==
        Lines{"level 1 of 1024 x 768 pixels is padded to whole tiles: 995 x 755 of them are the slide",
              "level 2 of 512 x 384 pixels is padded to whole tiles: 498 x 378 of them are the slide"});
  for (const std::size_t level : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(level);
    const double factor = level == 1 ? 2.0 : 4.0;
    CHECK(slide->info().levels[level].downsample == factor);
    CHECK(slide->info().downsample_x(level) == factor);
    CHECK(slide->info().downsample_y(level) == factor);
    CHECK(slide->coded_level(level).width == slide->info().levels[level].width);
    CHECK(read_level(*slide, level) == reduced(base, static_cast<int>(factor)).data);
  }
}

TEST_CASE("a level that is padded at one border by two pixels is cut, also if it was made of single pixels") {
  const TemporaryFolder folder;
  const Picture base = squares(2044, 1536);
  for (const Picture& level : {reduced(base, 2), sampled(base, 1022, 768, 2.0, 2.0, 0.0)}) {
    const auto slide = open_slide(folder, base, {padded(level)});
    CHECK(sizes(*slide) == "2044x1536 1022x768 ");
    CHECK(slide->info().warnings ==
          Lines{"level 1 of 1024 x 768 pixels is padded to whole tiles: 1022 x 768 of them are the slide"});
  }
}

TEST_CASE("a picture that was resized to whole tiles isn't cut, nor is one that shows nothing") {
  const TemporaryFolder folder;
  const Picture base = squares(1990, 1510);
  const auto resized =
      open_slide(folder, base, {image(sampled(base, 1024, 768, 1990.0 / 1024, 1510.0 / 768, 0.5), 1024, 768)});
  CHECK(sizes(*resized) == "1990x1510 1024x768 ");
  CHECK(resized->info().downsample_x(1) == doctest::Approx(1990.0 / 1024));
  CHECK(resized->info().downsample_y(1) == doctest::Approx(1510.0 / 768));
  CHECK(resized->info().warnings.empty());
  const auto plain = [](int width, int height) {
    return Picture{width, height, 1, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height), 243)};
  };
  const auto blank = open_slide(folder, plain(1990, 1510), {padded(plain(995, 755))});
  CHECK(sizes(*blank) == "1990x1510 1024x768 ");
  CHECK(blank->info().warnings.empty());
}
