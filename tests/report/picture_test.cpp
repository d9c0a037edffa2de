#include "report/picture.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

using namespace slidestream;
using namespace slidestream::report;

namespace {

ColourImage gradient(int width, int height) {
  ColourImage image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto red = static_cast<std::uint8_t>(255 * x / std::max(1, width - 1));
      for (const std::uint8_t sample : {red, std::uint8_t{100}, std::uint8_t{0}}) image.pixels.push_back(sample);
    }
  }
  return image;
}

WindowMap map_of(std::int64_t columns, std::int64_t rows) {
  WindowMap map{columns, rows, {}};
  for (std::int64_t i = 0; i < columns * rows; ++i) {
    map.values.push_back(static_cast<float>(i % columns));
    map.values.push_back(7.0F);
  }
  return map;
}

}  // namespace

TEST_CASE("a picture is averaged down and keeps its shape") {
  const ColourImage small = shrunk(gradient(1000, 500), 100);
  CHECK(small.width == 100);
  CHECK(small.height == 50);
  CHECK(small.pixels[0] <= 2);
  CHECK(small.pixels[3 * 99] >= 253);
  CHECK(small.pixels[3 * 99 + 1] == 100);
  CHECK(shrunk(gradient(30, 20), 100).width == 30);
  CHECK(shrunk(gradient(5000, 1), 100).height == 1);
}

TEST_CASE("a thumbnail is as large as its room") {
  const ColourImage image = gradient(256, 200);
  const std::string whole = fitting_jpeg(image, 1 << 20);
  CHECK(whole.substr(0, 2) == "\xff\xd8");
  const std::string tight = fitting_jpeg(image, whole.size() - 1);
  CHECK(tight.size() < whole.size());
  CHECK(!tight.empty());
  CHECK(fitting_jpeg(image, 10).empty());
}

TEST_CASE("a map is averaged over blocks until it fits, and says its scale") {
  const MapPicture whole = map_picture(map_of(40, 30), 1 << 20);
  CHECK(whole.columns == 40);
  CHECK(whole.block == 1);
  CHECK(whole.channels[0].low == 0.0);
  CHECK(whole.channels[0].high == 39.0);
  CHECK(static_cast<unsigned char>(whole.channels[0].cells[39]) == 255);
  CHECK(whole.channels[1].low == 7.0);
  CHECK(whole.channels[1].cells == std::string(1200, '\0'));

  const MapPicture coarse = map_picture(map_of(40, 30), 2 * 20 * 15);
  CHECK(coarse.block == 2);
  CHECK(coarse.columns == 20);
  CHECK(coarse.rows == 15);
  CHECK(coarse.channels[0].low == 0.5);
  CHECK(map_picture(map_of(1000, 10), 1 << 20).columns <= largest_map);
  CHECK(map_picture(map_of(40, 30), 20).columns == 0);
  CHECK(map_picture({}, 1 << 20).columns == 0);
}

TEST_CASE("a map whose values aren't numbers, or are too few, does no harm") {
  WindowMap map = map_of(9, 9);
  map.values[4] = std::numeric_limits<float>::quiet_NaN();
  map.values[6] = std::numeric_limits<float>::infinity();
  const MapPicture picture = map_picture(map, 1 << 20);
  CHECK(std::isfinite(picture.channels[0].high));
  map.values.pop_back();
  CHECK(map_picture(map, 1 << 20).columns == 0);
}

TEST_CASE("a slide that can't be opened has no thumbnail") {
  CHECK_THROWS_AS(read_thumbnail("/nowhere/slide.svs", 256), SlideError);
}

TEST_CASE("classes have colours of their own") {
  std::set<Rgb> colours;
  for (int label = 0; label < 16; ++label) colours.insert(class_colour(label));
  CHECK(colours.size() == 16);
}
