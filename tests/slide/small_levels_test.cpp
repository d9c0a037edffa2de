// Levels of few pixels, and those much smaller than the level before: a page with a name is none of them.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <slidestream/slide.hpp>
#include <vector>

#include "slide/level_pictures.hpp"
#include "slide/tiff_fixture.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// Letters of a name: five rows of three pixels each.
constexpr std::array<std::array<int, 5>, 7> letters = {{{0b110, 0b101, 0b101, 0b101, 0b110},
                                                        {0b010, 0b101, 0b101, 0b101, 0b010},
                                                        {0b111, 0b100, 0b110, 0b100, 0b111},
                                                        {0b001, 0b001, 0b001, 0b101, 0b010},
                                                        {0b010, 0b101, 0b111, 0b101, 0b101},
                                                        {0b110, 0b101, 0b101, 0b101, 0b101},
                                                        {0b111, 0b100, 0b110, 0b100, 0b111}}};

bool is_ink(int x, int y) {
  const auto letter = static_cast<std::size_t>(x / 4 + y / 6) % letters.size();
  return x % 4 < 3 && y % 6 < 5 && (letters[letter][static_cast<std::size_t>(y % 6)] >> (2 - x % 4) & 1) != 0;
}

/// Paper with lines of a name, in letters of 3 x 5 pixels.
Picture page(int width, int height, int paper = 255) {
  return grey_picture(width, height,
                      [paper](int x, int y) { return x > 0 && y > 0 && is_ink(x - 1, y - 1) ? 0 : paper; });
}

class SmallLevels : public TiffFixture {
 public:
  explicit SmallLevels(const Picture& picture) { tiff.directories = {as_level(picture)}; }

  std::shared_ptr<const Slide> open_with(const std::vector<Picture>& levels) {
    tiff.directories.resize(1);
    for (const Picture& level : levels) tiff.directories.push_back(as_level(level, to_bytes, 64));
    return open();
  }
};

void check_no_level(const Slide& slide) {
  CHECK(slide.info().levels.size() == 1);
  CHECK(slide.info().associated.size() == 1);
  REQUIRE(slide.info().warnings.size() == 1);
  CHECK(slide.info().warnings[0].ends_with("isn't like the slide: it is no level"));
}

/// The picture halved again and again, to one pixel, each time as `halve` does.
template <class Halve>
std::vector<Picture> pyramid(const Picture& picture, const Halve& halve) {
  std::vector<Picture> levels = {picture};
  while (std::min(levels.back().width, levels.back().height) > 1) levels.push_back(halve(levels.back()));
  levels.erase(levels.begin());
  return levels;
}

}  // namespace

TEST_CASE("levels down to one pixel are some, however they were made") {
  const std::vector<std::function<Picture(const Picture&)>> ways = {
      [](const Picture& of) { return reduced(of, 2); }, [](const Picture& of) { return decimated(of, 2, 0); },
      [](const Picture& of) { return decimated(of, 2, 1); },
      [](const Picture& of) { return sharpened(reduced(of, 2)); },
      [](const Picture& of) { return displaced(reduced(of, 2)); }};
  for (const auto& picture : made_up_pictures()) {
    CAPTURE(picture.first);
    const Picture base = reduced(picture.second, 8);
    SmallLevels slide(base);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      CAPTURE(way);
      const std::vector<Picture> levels = pyramid(base, ways[way]);
      const auto opened = slide.open_with(levels);
      CHECK(opened->info().levels.size() == 1 + levels.size());
      CHECK(opened->info().warnings.empty());
    }
  }
}

TEST_CASE("a small level may be much smaller than the one before it") {
  for (const auto& picture : made_up_pictures()) {
    CAPTURE(picture.first);
    SmallLevels slide(picture.second);
    for (const int by : {64, 128}) {
      CAPTURE(by);
      const auto opened = slide.open_with({reduced(picture.second, by)});
      CHECK(opened->info().levels.size() == 2);
      CHECK(opened->info().warnings.empty());
    }
  }
}

TEST_CASE("a page with a name is no level, however small it is") {
  for (const auto& picture : made_up_pictures()) {
    CAPTURE(picture.first);
    for (const int side : {32, 24, 16, 12, 9}) {
      CAPTURE(side);
      for (const int by : {2, 4, 16}) {
        CAPTURE(by);
        const double apart = 2048.0 / (side * by);
        const Picture base = grey_picture(side * by, side * 3 / 4 * by, [&](int x, int y) {
          return at(picture.second, static_cast<int>(x * apart), static_cast<int>(y * apart));
        });
        SmallLevels slide(base);
        for (const int paper : {255, 240, 160}) {
          CAPTURE(paper);
          check_no_level(*slide.open_with({page(side, side * 3 / 4, paper)}));
        }
      }
    }
  }
}

TEST_CASE("a page in which two letters at most have room is a level") {
  SmallLevels slide(reduced(tissue(), 64));
  CHECK(slide.open_with({page(8, 6)})->info().levels.size() == 2);
}

TEST_CASE("a page more than 1024 times smaller than the level before it is no level: it can't be compared") {
  constexpr int width = 12;
  constexpr int height = 9;
  constexpr int by = 1025;
  constexpr std::uint32_t tile = 1024;
  const Picture glass = grey_picture(tile, tile, [](int, int) { return 243; });
  const Bytes bytes = encode_jpeg(glass, {.coding = JpegOptions::Coding::grey});
  TiffFixture file;
  file.tiff.directories = {tiled_directory(width * by, height * by, tile, tile, 1).set_short(259, 7),
                           as_level(page(width, height), to_bytes, 64)};
  constexpr std::size_t columns = (width * by + tile - 1) / tile;
  constexpr std::size_t rows = (height * by + tile - 1) / tile;
  file.tiff.directories[0].tiles.assign(columns * rows, bytes);
  check_no_level(*file.open());
}
