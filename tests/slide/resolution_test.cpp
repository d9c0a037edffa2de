// XResolution and YResolution of every type, and those that say no resolution: docs/formats.md, "Tags".

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

constexpr std::uint16_t x_resolution = 282;
constexpr std::uint16_t y_resolution = 283;
constexpr std::uint64_t centimetre = 3;

/// A slide without resolution tags.
struct Fixture {
  Fixture() {
    tiff.directories = {tiled_directory(100, 60, 64, 64, 1).set_short(296, centimetre)};
    tiff.directories[0].tiles.assign(2, Bytes(64 * 64));
  }
  void set_both(std::uint16_t type, std::vector<std::uint64_t> numbers, std::uint64_t denominator = 1) {
    for (const std::uint16_t tag : {x_resolution, y_resolution}) {
      tiff.directories[0].remove(tag).tags.push_back({tag, type, numbers, {}, denominator});
    }
  }
  SlideInfo info() { return Slide::open(folder.write("slide.tif", tiff.bytes()))->info(); }

  TemporaryFolder folder;
  TestTiff tiff;
};

Lines passed_over(const std::string& fault) {
  return {"XResolution " + fault + ": the resolution is passed over",
          "YResolution " + fault + ": the resolution is passed over"};
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "resolutions of every type of numbers are read") {
  const std::vector<TestTag> kinds = {{0, short_, {20000}, {}},
                                      {0, long_, {20000}, {}},
                                      {0, slong, {20000}, {}},
                                      {0, long8, {20000}, {}},
                                      {0, rational, {40000}, {}, 2},
                                      {0, srational, {40000}, {}, 2},
                                      {0, float_, {std::bit_cast<std::uint32_t>(20000.0F)}, {}},
                                      {0, double_, {std::bit_cast<std::uint64_t>(20000.0)}, {}}};
  for (const bool big_endian : {false, true}) {
    tiff.big_endian = big_endian;
    for (const TestTag& kind : kinds) {
      CAPTURE(kind.type);
      set_both(kind.type, kind.numbers, kind.denominator);
      const SlideInfo found = info();
      CHECK(found.mpp.value_or(0.0) == doctest::Approx(0.5));
      CHECK(found.warnings.empty());
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "resolutions that are no positive number get a line") {
  const auto check = [this](const Lines& lines) {
    const SlideInfo found = info();
    CHECK_FALSE(found.mpp.has_value());
    CHECK(found.warnings == lines);
  };
  const Lines not_positive = passed_over("is no positive number");
  for (const auto& [above, below] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 1}, {0, 0}, {20000, 0}}) {
    set_both(rational, {above}, below);
    check(not_positive);
    set_both(srational, {above}, below);
    check(not_positive);
  }
  constexpr std::uint64_t minus_20000 = std::uint64_t{0} - 20000;
  set_both(srational, {minus_20000});
  check(not_positive);
  set_both(slong, {minus_20000});
  check(not_positive);
  for (const float value :
       {-20000.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    set_both(float_, {std::bit_cast<std::uint32_t>(value)});
    check(not_positive);
  }
  set_both(double_, {std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN())});
  check(passed_over("has no value that can be read"));
  set_both(ascii, {65});
  check(passed_over("has no value that can be read"));
  set_both(rational, {20000, 1});
  check(passed_over("has 2 values, expected 1"));
}

TEST_CASE_FIXTURE(Fixture, "a resolution that stands twice says no size of pixels") {
  for (const std::uint16_t tag : {x_resolution, y_resolution}) {
    set_both(rational, {20000});
    tiff.directories[0].tags.push_back({tag, rational, {40000}, {}});
    const SlideInfo found = info();
    CHECK_FALSE(found.mpp.has_value());
    const std::string name = tag == x_resolution ? "XResolution" : "YResolution";
    CHECK(found.warnings == Lines{name + " stands twice: the resolution is passed over"});
  }
  // Another place still says it.
  tiff.directories[0].set_text(270, "Scanner|MPP = 0.25");
  CHECK(info().mpp.value_or(0.0) == 0.25);
}

TEST_CASE_FIXTURE(Fixture, "resolutions without a unit of length aren't looked at") {
  tiff.directories[0].set_short(296, 1);
  set_both(rational, {0}, 0);
  CHECK(info().warnings.empty());
}

TEST_CASE_FIXTURE(Fixture, "levels' resolutions that contradict the largest image's get a line, unless all repeat it") {
  // Pixels per centimetre of 400 x 240, 200 x 120 and 100 x 60 pixels; 0: none.
  const auto info_of = [this](const std::vector<std::uint64_t>& resolutions, const std::string& text = "") {
    tiff.directories.clear();
    std::uint32_t by = 1;
    for (const std::uint64_t resolution : resolutions) {
      const std::uint32_t width = 400 / by, height = 240 / by;
      TestDirectory level = tiled_directory(width, height, 64, 64, 1);
      level.tiles.assign(std::size_t{(width + 63) / 64} * ((height + 63) / 64), Bytes(64 * 64));
      if (resolution != 0) {
        level.set_short(296, centimetre).set(x_resolution, rational, {resolution});
        level.set(y_resolution, rational, {resolution});
      }
      tiff.directories.push_back(level);
      by *= 2;
    }
    if (!text.empty()) tiff.directories[0].set_text(270, text);
    const SlideInfo found = info();
    CHECK(found.levels.size() == 3);
    CHECK(found.mpp.value_or(0.0) == doctest::Approx(10000.0 / static_cast<double>(resolutions.front())));
    return found;
  };
  const auto line = [](const std::string& counts, const std::string& image, const std::string& size) {
    return Lines{"the resolution of the largest image says " + counts +
                 " micrometres per pixel, and that of the image of " + image + " pixels gives it " + size +
                 ": the resolution of the largest image counts"};
  };
  CHECK(info_of({5000, 10000, 5000}).warnings == line("2", "200 x 120", "0.5"));
  CHECK(info_of({20000, 20000, 5000}).warnings == line("0.5", "200 x 120", "0.25"));
  CHECK(info_of({20000, 0, 1000}).warnings == line("0.5", "100 x 60", "2.5"));
  CHECK(info_of({20000, 10000, 20000}).warnings == line("0.5", "100 x 60", "0.125"));
  // By their sizes, within 2 %, all the same, none, and those of printers.
  for (const std::vector<std::uint64_t>& resolutions : std::vector<std::vector<std::uint64_t>>{{20000, 10000, 5000},
                                                                                               {20000, 10100, 5050},
                                                                                               {20000, 20000, 20000},
                                                                                               {20000, 20000, 0},
                                                                                               {20000, 0, 0},
                                                                                               {20000, 118, 118}}) {
    CHECK(info_of(resolutions).warnings == Lines{});
  }
  // Beside a description no resolution counts.
  CHECK(info_of({5000, 10000, 5000}, "Scanner|MPP = 2").warnings == Lines{});
}
