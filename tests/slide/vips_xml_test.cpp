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

TEST_CASE_FIXTURE(Fixture, "libvips' XML of a smaller level: a line says that the pixel size may be level 0's") {
  const std::string size = property("openslide.mpp-x", "0.25") + property("openslide.mpp-y", "0.25");
  const std::string power = property("openslide.objective-power", "40");
  SlideInfo info = with(size + power + property("slide-level", "2"));
  CHECK(info.mpp.value_or(0.0) == 0.25);
  CHECK_FALSE(info.magnification.has_value());
  CHECK(info.warnings == Lines{"the description says that the file was made from level 2 of a slide: its pixel size "
                               "may be level 0's; input.mpp sets another one"});
  // Without a size there is nothing to doubt.
  info = with(power + property("slide-level", "2"));
  CHECK_FALSE(info.mpp.has_value());
  CHECK(info.warnings.empty());
  // Of level 0 the objective counts, too. What is no number says nothing.
  for (const std::string& level : {std::string(), property("slide-level", "0"), property("slide-level", "2x")}) {
    CAPTURE(level);
    info = with(size + power + level);
    CHECK(info.mpp.value_or(0.0) == 0.25);
    CHECK(info.magnification.value_or(0.0) == 40.0);
    CHECK(info.warnings.empty());
  }
  info = with(power);
  CHECK_FALSE(info.mpp.has_value());
  CHECK(info.magnification.value_or(0.0) == 40.0);
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
