// Pixel sizes in the XML that libvips writes as a description.

#include <doctest/doctest.h>

#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

std::string property(const std::string& name, const std::string& value) {
  return "<property><name>" + name + "</name><value type=\"VipsRefString\">" + value + "</value></property>";
}

struct Fixture {
  Fixture() {
    tiff.directories = {tiled_directory(100, 60, 64, 64, 1)};
    tiff.directories[0].tiles.assign(2, Bytes(64 * 64));
  }
  SlideInfo with(const std::string& properties) {
    return described(
        "<?xml version=\"1.0\"?>\n<image xmlns=\"http://www.vips.ecs.soton.ac.uk//dzsave\" version=\"8.10.0\">"
        "<properties>" +
        property("width", "100") + properties + "</properties></image>");
  }
  SlideInfo described(const std::string& text) {
    tiff.directories[0].set_text(270, text);
    return Slide::open(folder.write("slide.tif", tiff.bytes()))->info();
  }

  TemporaryFolder folder;
  TestTiff tiff;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "libvips' XML gives the pixel size of the slide that it read") {
  SlideInfo info = with(property("openslide.mpp-x", "0.5") + property("openslide.mpp-y", "0.25"));
  CHECK(info.mpp.value_or(0.0) == 0.5);
  CHECK(info.mpp_y.value_or(0.0) == 0.25);
  CHECK(info.warnings.empty());
  // Beside a resolution that says something else.
  tiff.directories[0].set(282, rational, {10000}).set(283, rational, {10000}).set_short(296, 3);
  info = with(property("openslide.mpp-x", "0.5") + property("openslide.mpp-y", "0.5"));
  CHECK(info.mpp.value_or(0.0) == 0.5);
  CHECK(info.warnings ==
        Lines{"the description says 0.5 micrometres per pixel, and the resolution 1: the description counts"});
}

TEST_CASE_FIXTURE(Fixture, "libvips' XML without a pixel size that can be one") {
  CHECK_FALSE(with("").mpp.has_value());
  CHECK(with("").warnings.empty());
  const SlideInfo nonsense = with(property("openslide.mpp-x", "nan") + property("openslide.mpp-y", "nan"));
  CHECK_FALSE(nonsense.mpp.has_value());
  CHECK(nonsense.warnings == Lines{"openslide.mpp-x is 'nan', no positive number: it is passed over",
                                   "openslide.mpp-y is 'nan', no positive number: it is passed over"});
  // XML of others, and what is cut.
  const std::string size = property("openslide.mpp-x", "0.5");
  CHECK_FALSE(described("<scan><properties>" + size + "</properties></scan>").mpp.has_value());
  CHECK_FALSE(described("<image><properties>" + size).mpp.has_value());
}
