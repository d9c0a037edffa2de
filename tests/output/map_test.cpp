#include <doctest/doctest.h>
#include <tiffio.h>

#include <memory>
#include <numeric>

#include "sample_run.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;

namespace {

/// More rows than one strip holds.
SlideResult slide_with_map() {
  SlideResult slide = test::sample_slide("x.svs", 4, 1.0);
  slide.mpp = 0.25;
  slide.map = {5, 150, std::vector<float>(5 * 150 * 2)};
  std::iota(slide.map.values.begin(), slide.map.values.end(), 0.5F);
  return slide;
}

}  // namespace

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
