// Which smaller pages show what the slide shows: pages with a label in a corner don't, whatever made the others do.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <slidestream/slide.hpp>
#include <string>

#include "slide/test_images.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

std::uint8_t to_sample(double value) { return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L)); }

/// A grey picture of what `value` says of a pixel.
Picture grey_picture(int width, int height, const std::function<double(int x, int y)>& value) {
  Picture picture{width, height, 1, {}};
  picture.data.reserve(static_cast<std::size_t>(width * height));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) picture.data.push_back(to_sample(value(x, y)));
  }
  return picture;
}

int at(const Picture& picture, int x, int y) {
  return *picture.at(std::clamp(x, 0, picture.width - 1), std::clamp(y, 0, picture.height - 1));
}

Picture grey(const Picture& rgb) { return {rgb.width, rgb.height, 1, formula(rgb)}; }

TestDirectory as_level(const Picture& picture, int tile = 256) {
  const auto side = static_cast<std::uint32_t>(tile);
  TestDirectory directory = tiled_directory(static_cast<std::uint32_t>(picture.width),
                                            static_cast<std::uint32_t>(picture.height), side, side, 1);
  for (int y = 0; y < picture.height; y += tile) {
    for (int x = 0; x < picture.width; x += tile) {
      directory.tiles.push_back(to_bytes(cut(picture, x, y, tile, tile)));
    }
  }
  return directory;
}

// What programs make smaller levels by, and what they do to them.

Picture decimated(const Picture& picture, int by, int phase) {
  return grey_picture(picture.width / by, picture.height / by,
                      [&](int x, int y) { return at(picture, x * by + phase, y * by + phase); });
}

Picture displaced(const Picture& picture) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) {
    return (at(picture, x, y) + at(picture, x + 1, y) + at(picture, x, y + 1) + at(picture, x + 1, y + 1)) / 4.0;
  });
}

double mean_around(const Picture& picture, int x, int y) {
  double sum = 0.0;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) sum += at(picture, x + dx, y + dy);
  }
  return sum / 25.0;
}

Picture blurred(const Picture& picture) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) { return mean_around(picture, x, y); });
}

Picture sharpened(const Picture& picture) {
  return grey_picture(picture.width, picture.height,
                      [&](int x, int y) { return 2.0 * at(picture, x, y) - mean_around(picture, x, y); });
}

Picture brighter(const Picture& picture, int by) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) { return at(picture, x, y) + by; });
}

Picture coarse_jpeg(const Picture& picture) {
  return decode_jpeg_grey(encode_jpeg(picture, {.coding = JpegOptions::Coding::grey, .quality = 30}));
}

std::map<std::string, Picture> sound_levels(const Picture& picture, int by) {
  const Picture means = reduced(picture, by);
  const Picture nearest = decimated(picture, by, 0);
  return {{"means", means},
          {"the nearest pixel", nearest},
          {"the middle pixel", decimated(picture, by, by / 2)},
          {"half a pixel away", displaced(means)},
          {"the nearest pixel, half a pixel away", displaced(nearest)},
          {"blurred", blurred(means)},
          {"sharpened", sharpened(means)},
          {"brighter", brighter(means, 6)},
          {"darker", brighter(means, -6)},
          {"JPEG of quality 30", coarse_jpeg(means)},
          {"all at once", coarse_jpeg(brighter(sharpened(displaced(nearest)), 4))}};
}

/// White paper with lines of dark strokes, of an area's part `share`, over the picture in one of its corners.
Picture with_label(Picture picture, double share, bool at_right, bool at_bottom) {
  const int width = static_cast<int>(std::ceil(picture.width * std::sqrt(share)));
  const int height = static_cast<int>(std::ceil(picture.height * std::sqrt(share)));
  const int left = at_right ? picture.width - width : 0;
  const int top = at_bottom ? picture.height - height : 0;
  const int line = std::max(6, height / 5);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool is_stroke = y % line > line / 3 && x % std::max(4, line / 2) < std::max(1, line / 8);
      picture.data[static_cast<std::size_t>((top + y) * picture.width + left + x)] = is_stroke ? 20 : 250;
    }
  }
  return picture;
}

std::map<std::string, Picture> made_up_pictures() {
  return {
      {"stained", grey(make_stained_picture(2048, 1536, 5))},
      {"blank glass", grey_picture(2048, 1536, [](int x, int y) { return 240 + (x * 7 + y * 13) % 5; })},
      {"one colour", grey_picture(2048, 1536, [](int, int) { return 243; })},
      {"sharp edges", grey_picture(2048, 1536, [](int x, int y) { return (x / 37 + y / 53) % 2 == 0 ? 40 : 230; })}};
}

class LevelsOf {
 public:
  explicit LevelsOf(const Picture& picture) { tiff_.directories = {as_level(picture), {}}; }

  std::shared_ptr<const Slide> open(const Picture& level) {
    tiff_.directories[1] = as_level(level);
    return Slide::open(folder_.write("slide.tif", tiff_.bytes()));
  }

 private:
  TemporaryFolder folder_;
  TestTiff tiff_;
};

void check_sound_levels(const Picture& picture, std::initializer_list<int> factors) {
  LevelsOf slide(picture);
  for (const int by : factors) {
    for (const auto& level : sound_levels(picture, by)) {
      INFO("by ", by, ", ", level.first);
      const auto opened = slide.open(level.second);
      CHECK(opened->info().levels.size() == 2);
      CHECK(opened->info().warnings.empty());
    }
  }
}

void check_labels(const Picture& picture, std::initializer_list<int> factors, double share) {
  LevelsOf slide(picture);
  for (const int by : factors) {
    for (const int corner : {0, 1, 2, 3}) {
      INFO("by ", by, ", corner ", corner, ", share ", share);
      const auto opened = slide.open(with_label(reduced(picture, by), share, corner % 2 == 1, corner / 2 == 1));
      CHECK(opened->info().levels.size() == 1);
      REQUIRE(opened->info().warnings.size() == 1);
      CHECK(opened->info().warnings[0].ends_with("isn't like the slide: it is no level"));
    }
  }
}

}  // namespace

TEST_CASE("a smaller level is one, however it was made") {
  for (const auto& picture : made_up_pictures()) {
    CAPTURE(picture.first);
    check_sound_levels(picture.second, {2, 4, 16, 32});
  }
}

TEST_CASE("a smaller image with a label in a corner is no level") {
  for (const auto& picture : made_up_pictures()) {
    CAPTURE(picture.first);
    check_labels(picture.second, {2, 4, 16}, 0.08);
  }
}

TEST_CASE("a label in a large level is found in the places that are looked at") {
  // More pixels than are looked at whole. Grey, so that little is decoded.
  const Picture picture = grey_picture(8192, 6144, [](int x, int y) {
    const int from_x = x - 4000;
    const int from_y = y - 3000;
    return from_x * from_x + from_y * from_y < 2500 * 2500 ? 120 + x / 16 % 7 * 15 : 240;
  });
  check_labels(picture, {2}, 0.08);
  LevelsOf slide(picture);
  CHECK(slide.open(reduced(picture, 2))->info().levels.size() == 2);
  CHECK(slide.open(decimated(picture, 2, 1))->info().levels.size() == 2);
}

TEST_CASE("a tile that is missing in one of two levels isn't compared") {
  const Picture picture = grey(make_stained_picture(2048, 1536, 6));
  const TemporaryFolder folder;
  for (const std::size_t place : {0U, 1U}) {
    TestTiff tiff;
    tiff.directories = {as_level(picture), as_level(reduced(picture, 2))};
    tiff.directories[place].tiles[5].clear();
    CHECK(Slide::open(folder.write("slide.tif", tiff.bytes()))->info().levels.size() == 2);
  }
}

TEST_CASE("real slides: levels stay however they were made, and labels are found") {
  const auto root = test_data_root();
  if (!root) return report_skipped("no test data");
  for (const char* name : {"cmu-1-small-region.svs", "tcga-cr-7395.svs"}) {
    CAPTURE(name);
    const auto slide = Slide::open(*root / "data" / name);
    const Level& level = slide->info().levels[0];
    const Picture picture{static_cast<int>(level.width), static_cast<int>(level.height), 1, read_level(*slide)};
    check_sound_levels(picture, {2, 4, 16, 32});
    check_labels(picture, {2, 4, 16}, 0.08);
  }
}
