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

namespace {

/// Levels that are halved from level to level and lose pixels at their right and lower borders each time.
std::vector<Picture> cut_pyramid(const Picture& base, int levels, int lost) {
  std::vector<Picture> made;
  const Picture* before = &base;
  for (int i = 0; i < levels; ++i) {
    const Picture half = reduced(*before, 2);
    made.push_back(cut(half, 0, 0, before->width / 2 - lost, before->height / 2 - lost));
    before = &made.back();
  }
  return made;
}

TestDirectory whole(const Picture& picture) { return image(picture, picture.width, picture.height); }

/// All but the first in the main chain, as reduced images.
std::shared_ptr<const Slide> open_chain(const TemporaryFolder& folder, const Picture& base,
                                        const std::vector<Picture>& levels) {
  TestTiff tiff;
  tiff.directories = {whole(base)};
  for (const Picture& level : levels) {
    tiff.directories.push_back(whole(level));
    tiff.directories.back().set(254, long_, {1});
  }
  return Slide::open(folder.write("slide.tif", tiff.bytes()));
}

}  // namespace

TEST_CASE("levels that lost pixels at their right and lower borders have whole factors") {
  const TemporaryFolder folder;
  const Picture base = squares(1994, 1515);
  const std::vector<Picture> levels = cut_pyramid(base, 2, 4);
  const Lines lines = {
      "level 1 of 993 x 753 pixels is cut at its right and lower borders: each is 2 of level 0 along both axes, and it "
      "lacks the last 8 x 9 of them",
      "level 2 of 492 x 372 pixels is cut at its right and lower borders: each is 4 of level 0 along both axes, and it "
      "lacks the last 26 x 27 of them"};
  std::shared_ptr<const Slide> slide;
  SUBCASE("as SubIFDs") { slide = open_slide(folder, base, {whole(levels[0]), whole(levels[1])}); }
  SUBCASE("in the main chain") { slide = open_chain(folder, base, levels); }
  REQUIRE(sizes(*slide) == "1994x1515 993x753 492x372 ");
  CHECK(slide->info().warnings == lines);
  CHECK(slide->info().associated.empty());
  for (const std::size_t level : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(level);
    const double factor = level == 1 ? 2.0 : 4.0;
    CHECK(slide->info().levels[level].downsample == factor);
    CHECK(slide->info().downsample_x(level) == factor);
    CHECK(slide->info().downsample_y(level) == factor);
    CHECK(read_level(*slide, level) == levels[level - 1].data);
  }
}

TEST_CASE("a picture that was resized to a cut level's size isn't cut, and a line says where nothing tells") {
  const TemporaryFolder folder;
  const Picture base = squares(1994, 1515);
  const Picture resized = sampled(base, 990, 752, 1994.0 / 990, 1515.0 / 752, 0.5);
  const auto slide = open_slide(folder, base, {whole(resized)});
  CHECK(sizes(*slide) == "1994x1515 990x752 ");
  CHECK(slide->info().downsample_x(1) == doctest::Approx(1994.0 / 990));
  CHECK(slide->info().downsample_y(1) == doctest::Approx(1515.0 / 752));
  CHECK(slide->info().warnings.empty());
  const auto plain = [](int width, int height) {
    return Picture{width, height, 1, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height), 243)};
  };
  const auto blank = open_slide(folder, plain(1994, 1515), {whole(plain(990, 752))});
  CHECK(blank->info().downsample_x(1) == doctest::Approx(1994.0 / 990));
  CHECK(
      blank->info().warnings ==
      Lines{"level 1 of 990 x 752 pixels may lack pixels at its right and lower borders, or be resized, which nothing "
            "in it tells: places on it are found by the ratio of the sizes"});
  // A pixel less than rounding leaves is no doubt.
  CHECK(open_slide(folder, plain(1994, 1515), {whole(plain(996, 757))})->info().warnings.empty());
}

TEST_CASE("a reduced image of nearly a level's size is no level of the main chain if it was resized, with a line") {
  const TemporaryFolder folder;
  const Picture base = squares(1994, 1515);
  const auto resized = open_chain(folder, base, {sampled(base, 984, 747, 1994.0 / 984, 1515.0 / 747, 0.5)});
  CHECK(sizes(*resized) == "1994x1515 ");
  CHECK(resized->info().associated == Lines{"image 1"});
  CHECK(resized->info().warnings == Lines{"the image of 984 x 747 pixels hasn't the size of a level: it is no level"});
  // One of another size is what it is.
  const auto between = open_chain(folder, base, {sampled(base, 800, 608, 1994.0 / 800, 1515.0 / 608, 0.5)});
  CHECK(sizes(*between) == "1994x1515 ");
  CHECK(between->info().associated == Lines{"image 1"});
  CHECK(between->info().warnings.empty());
}
