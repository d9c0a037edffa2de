// Pages that show small type, of a size that a smaller level of the slide would have. Most of the slide is glass.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <slidestream/slide.hpp>
#include <vector>

#include "slide/test_images.hpp"
#include "slide/test_tiff.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

constexpr int slide_side = 2048;
constexpr int tile_side = 256;

/// A grey square of what `value` says of a pixel.
template <class Value>
Picture square(int side, const Value& value) {
  Picture picture{side, side, 1, {}};
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) picture.data.push_back(static_cast<std::uint8_t>(std::lround(value(x, y))));
  }
  return picture;
}

/// A disc of tissue on glass.
Picture tissue_on_glass() {
  return square(slide_side, [](int x, int y) {
    if ((x - 1100) * (x - 1100) + (y - 1100) * (y - 1100) >= 350 * 350) return 240.0;
    return 150.0 + 30.0 * std::sin(x / 23.0) * std::cos(y / 19.0) + 12.0 * std::sin(x / 5.0 + y / 7.0) +
           (x * 31 + y * 17) % 13;
  });
}

/// Pixels of the slide, so far apart, brighter by `by`.
Picture single_pixels(const Picture& picture, int apart, int by) {
  return square(picture.width / apart, [&](int x, int y) { return *picture.at(x * apart, y * apart) + by; });
}

struct Type {
  int size;  ///< pixels
  int lines;
  int ink = 0;
};

/// Lines of 19 letters as "DOE JANE 1950-01-01" has, each of two strokes and one that joins them.
Picture with_type(Picture picture, const Type& type) {
  const int left = picture.width * 5 / 8;
  const int top = picture.height / 10;
  const int step = type.size * 11 / 20;
  for (int line = 0; line < type.lines; ++line) {
    for (int letter = 0; letter < 19; ++letter) {
      if (letter == 3 || letter == 8) continue;
      for (int y = 0; y < type.size; ++y) {
        for (int x = 0; x < step - 2; ++x) {
          if (x != 0 && x != step - 3 && y != type.size / 2) continue;
          const int row = top + line * type.size * 8 / 5 + y;
          const int column = left + letter * step + x;
          if (column < picture.width) {
            picture.data[static_cast<std::size_t>(row * picture.width + column)] = static_cast<std::uint8_t>(type.ink);
          }
        }
      }
    }
  }
  return picture;
}

Picture page(int side, int paper, const Type& type) {
  return with_type(square(side, [paper](int, int) { return paper; }), type);
}

TestDirectory image(const Picture& picture) {
  const auto side = static_cast<std::uint32_t>(picture.width);
  TestDirectory directory = tiled_directory(side, side, tile_side, tile_side, picture.samples);
  for (int y = 0; y < picture.height; y += tile_side) {
    for (int x = 0; x < picture.width; x += tile_side) {
      directory.tiles.push_back(to_bytes(cut(picture, x, y, tile_side, tile_side)));
    }
  }
  return directory;
}

class SlideWith {
 public:
  SlideWith() { tiff_.directories = {image(picture), {}}; }

  /// Levels of a slide that has this image, too.
  std::size_t levels(const TestDirectory& other, std::size_t further_lines = 0) {
    tiff_.directories[1] = other;
    const auto slide = Slide::open(folder_.write("slide.tif", tiff_.bytes()));
    CHECK(slide->info().warnings.size() == 2 - slide->info().levels.size() + further_lines);
    return slide->info().levels.size();
  }

  std::size_t levels(const Picture& other) { return levels(image(other)); }

  const Picture picture = tissue_on_glass();

 private:
  TemporaryFolder folder_;
  TestTiff tiff_;
};

}  // namespace

TEST_CASE_FIXTURE(SlideWith, "a page with small type is no level of a slide that is mostly glass") {
  for (const Type& type : {Type{10, 5}, Type{14, 5}, Type{14, 1}, Type{20, 1}, Type{10, 5, 120}}) {
    CAPTURE(type.size);
    CAPTURE(type.lines);
    for (const int paper : {245, 255}) {
      CAPTURE(paper);
      CHECK(levels(page(1024, paper, type)) == 1);
      CHECK(levels(page(256, paper, type)) == 1);
    }
  }
  CHECK(levels(page(1024, 10, {10, 5, 245})) == 1);
}

TEST_CASE_FIXTURE(SlideWith, "small type on a slide's own level: it is no level") {
  for (const int by : {2, 4}) {
    CAPTURE(by);
    CHECK(levels(with_type(reduced(picture, by), {10, 5})) == 1);
    CHECK(levels(with_type(reduced(picture, by), {14, 1})) == 1);
  }
}

TEST_CASE_FIXTURE(SlideWith, "faint small type on a slide's own level, 40 of 255 off the glass: it is no level") {
  for (const int by : {2, 4}) {
    CAPTURE(by);
    for (const int ink : {200, 170, 150}) {
      CAPTURE(ink);
      CHECK(levels(with_type(reduced(picture, by), {10, 5, ink})) == 1);
      CHECK(levels(with_type(reduced(picture, by), {14, 1, ink})) == 1);
    }
  }
}

TEST_CASE("small type of a colour as bright as glass: it is no level") {
  const auto in_colours = [](const Picture& grey, int paper, const std::array<int, 3>& ink) {
    Picture picture{grey.width, grey.height, 3, {}};
    for (const std::uint8_t value : grey.data) {
      for (const int of_ink : ink) picture.data.push_back(static_cast<std::uint8_t>(value == 0 ? of_ink : paper));
    }
    return picture;
  };
  const TemporaryFolder folder;
  const auto levels = [&](const std::array<int, 3>& ink) {
    // On a blank slide.
    TestTiff tiff;
    tiff.directories = {image(in_colours(page(1024, 240, {14, 0}), 240, ink)),
                        image(in_colours(page(256, 240, {14, 2}), 240, ink))};
    return Slide::open(folder.write("slide.tif", tiff.bytes()))->info().levels.size();
  };
  CHECK(levels({240, 240, 240}) == 2);
  CHECK(levels({255, 255, 0}) == 1);
  CHECK(levels({60, 240, 240}) == 1);
  CHECK(levels({255, 150, 200}) == 1);
  CHECK(levels({200, 200, 200}) == 1);
  CHECK(levels({240, 240, 200}) == 1);
}

TEST_CASE("small type on glass, beside tissue with more fine structure: it is no level") {
  // Pale tissue, whose nuclei have two pixels of the level along a side.
  const auto is_nucleus = [](int x, int y) { return x % 24 < 8 && y % 24 < 8; };
  Picture picture{1024, 1024, 3, {}};
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      std::array<int, 3> colour = {240, 240, 240};
      if (y >= 512) colour = is_nucleus(x, y) ? std::array{120, 60, 150} : std::array{255, 200, 245};
      for (const int value : colour) picture.data.push_back(static_cast<std::uint8_t>(value));
    }
  }
  const TemporaryFolder folder;
  const auto levels = [&](const std::array<int, 3>& ink) {
    Picture level = reduced(picture, 4);
    // Away from the corners, where other rules find type.
    for (int letter = 0; letter < 19; ++letter) {
      for (int y = 80; y < 92; ++y) {
        for (int x = 60 + 7 * letter; x < 65 + 7 * letter; ++x) {
          if (x % 7 != 60 % 7 && x % 7 != 64 % 7 && y != 86) continue;
          for (int channel = 0; channel < 3; ++channel) {
            level.data[static_cast<std::size_t>(3 * (y * level.width + x) + channel)] =
                static_cast<std::uint8_t>(ink[static_cast<std::size_t>(channel)]);
          }
        }
      }
    }
    TestTiff tiff;
    tiff.directories = {image(picture), image(level)};
    return Slide::open(folder.write("slide.tif", tiff.bytes()))->info().levels.size();
  };
  CHECK(levels({240, 240, 240}) == 2);
  CHECK(levels({90, 90, 90}) == 1);
  // Yellow: its luminance is almost that of glass.
  CHECK(levels({240, 240, 140}) == 1);
}

TEST_CASE_FIXTURE(SlideWith, "levels of a slide that is mostly glass stay, also with dust and lost tiles") {
  for (const int by : {2, 4, 8}) {
    CAPTURE(by);
    const Picture means = reduced(picture, by);
    CHECK(levels(means) == 2);
    CHECK(levels(single_pixels(picture, by, 0)) == 2);
    CHECK(levels(single_pixels(picture, by, -30)) == 2);
    CHECK(levels(decode_jpeg_grey(encode_jpeg(means, {.coding = JpegOptions::Coding::grey, .quality = 30}))) == 2);
  }
  Picture dusty = reduced(picture, 2);
  // Beside the tissue, in a place that is compared.
  for (int y = 400; y < 406; ++y) std::fill_n(dusty.data.begin() + y * dusty.width + 400, 6, std::uint8_t{0});
  CHECK(levels(dusty) == 2);
  // A third of the tissue lies in these tiles.
  for (const int filling : {0, 255}) {
    CAPTURE(filling);
    TestDirectory lost = image(reduced(picture, 2));
    for (const std::size_t tile : {5U, 6U}) std::ranges::fill(lost.tiles[tile], static_cast<std::byte>(filling));
    // A level that is black there gets a line.
    CHECK(levels(lost, filling == 0 ? 1 : 0) == 2);
  }
}
