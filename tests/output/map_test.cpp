#include <doctest/doctest.h>
#include <tiffio.h>

#include <memory>
#include <numeric>
#include <set>

#include "sample_run.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;

namespace {

using Names = std::vector<std::string>;

/// More rows than one strip holds.
SlideResult slide_with_map() {
  SlideResult slide = test::sample_slide("x.svs", 4, 1.0);
  slide.mpp = 0.25;
  slide.map = {5, 150, std::vector<float>(5 * 150 * 2)};
  std::iota(slide.map.values.begin(), slide.map.values.end(), 0.5F);
  return slide;
}

}  // namespace

TEST_CASE("maps have the slides' names, each once") {
  CHECK(map_names({"a/x.svs", "b/y.tif", "z"}) == Names{"x", "y", "z"});
  CHECK(map_names({"a/x.svs", "b/x.svs", "c/x.tif"}) == Names{"x", "x-2", "x-3"});
  // A number never takes a name that a slide has itself.
  CHECK(map_names({"a/x.svs", "b/x.svs", "x-2.svs", "c/x-2.svs"}) == Names{"x", "x-3", "x-2", "x-2-2"});
  CHECK(map_names({"x.svs", "x-2.svs", "y/x.svs"}) == Names{"x", "x-2", "x-3"});
  CHECK(map_names({"/"}) == Names{"slide"});
  // Where capital letters aren't told from small ones, one map would take the other's place.
  CHECK(map_names({"a/S1.svs", "b/s1.svs", "c/s1.tif"}) == Names{"S1", "s1-2", "s1-3"});
  CHECK(map_names({"a/\u00c4.svs", "b/\u00e4.svs", "\u00c4-2.svs"}) == Names{"\u00c4", "\u00e4-3", "\u00c4-2"});
  const std::string long_name(255, 'n');
  for (const std::string& name : map_names({"a/" + long_name, "b/" + long_name})) CHECK(name.size() < 250);
  Names many(50000, "same.svs");
  const Names names = map_names(many);
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == many.size());
}

TEST_CASE("maps have names that Windows can have, unless that isn't wanted") {
  const Names slides = {"a/x:y?.svs",       "b/x_y_.svs", "con.svs",  "end..svs",
                        "a<b>c|d*e\"f.svs", "com1.x.svs", "comic.svs"};
  CHECK(map_names(slides) == Names{"x_y_", "x_y_-2", "con_", "end_", "a_b_c_d_e_f", "com1_.x", "comic"});
  CHECK(map_names(slides, false) == Names{"x:y?", "x_y_", "con", "end.", "a<b>c|d*e\"f", "com1.x", "comic"});
}

TEST_CASE("a TIFF map holds two float samples and the step between windows as its resolution") {
  const test::TemporaryFolder folder;
  Config config;
  config.output.dir = folder.path().string();
  config.output.maps = MapFormat::tiff;
  const SlideResult slide = slide_with_map();
  const std::string path = write_map(config, slide, "x");
  CHECK(path == (folder / "maps/x.tif").string());
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(TIFFOpen(path.c_str(), "r"), TIFFClose);
  REQUIRE(tiff != nullptr);
  std::uint32_t width = 0, height = 0;
  std::uint16_t samples = 0, bits = 0, format = 0, unit = 0;
  float resolution = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  TIFFGetField(tiff.get(), TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetField(tiff.get(), TIFFTAG_BITSPERSAMPLE, &bits);
  TIFFGetField(tiff.get(), TIFFTAG_SAMPLEFORMAT, &format);
  TIFFGetField(tiff.get(), TIFFTAG_RESOLUTIONUNIT, &unit);
  TIFFGetField(tiff.get(), TIFFTAG_XRESOLUTION, &resolution);
  CHECK(width == 5);
  CHECK(height == 150);
  CHECK(samples == 2);
  CHECK(bits == 32);
  CHECK(format == SAMPLEFORMAT_IEEEFP);
  CHECK(unit == RESUNIT_CENTIMETER);
  CHECK(resolution == doctest::Approx(1e4 / (0.25 * 128)));
  std::vector<float> row(10);
  for (std::uint32_t y = 0; y < height; ++y) {
    REQUIRE(TIFFReadScanline(tiff.get(), row.data(), y) == 1);
    CHECK(std::equal(row.begin(), row.end(), slide.map.values.begin() + y * 10));
  }
}

TEST_CASE("the same map is the same bytes") {
  const test::TemporaryFolder folder;
  for (const MapFormat format : {MapFormat::npy, MapFormat::tiff}) {
    Config config;
    config.output.dir = folder.path().string();
    config.output.maps = format;
    const std::string one = test::file_text(write_map(config, slide_with_map(), "one"));
    CHECK(one == test::file_text(write_map(config, slide_with_map(), "two")));
    CHECK(one.size() > 6000);
  }
}
