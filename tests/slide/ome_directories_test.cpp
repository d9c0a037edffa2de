// Which Image of OME-XML describes the directory that is read: the one whose TiffData names it.

#include <doctest/doctest.h>

#include <filesystem>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

const std::string no_pixels = "<MetadataOnly/>";
const std::string declares_none = "the image that its OME-XML declares isn't there";

/// An image of a chequered picture, in which squares are as large as a share of the width says.
TestDirectory view(std::uint32_t width, std::uint32_t height, int brightness = 200) {
  constexpr std::uint32_t side = 64;
  TestDirectory directory = tiled_directory(width, height, side, side, 1);
  for (std::uint32_t top = 0; top < height; top += side) {
    for (std::uint32_t left = 0; left < width; left += side) {
      Bytes tile(std::size_t{side} * side);
      for (std::uint32_t i = 0; i < side * side; ++i) {
        const std::uint32_t square = (left + i % side) * 8 / width + (top + i / side) * 5 / height;
        tile[i] = static_cast<std::byte>(square % 2 == 0 ? brightness : 40);
      }
      directory.tiles.push_back(std::move(tile));
    }
  }
  return directory;
}

std::string at(int directory) { return "<TiffData IFD=\"" + std::to_string(directory) + "\" PlaneCount=\"1\"/>"; }

std::string in_file(const std::string& name, int directory) {
  return "<TiffData IFD=\"" + std::to_string(directory) + "\" PlaneCount=\"1\"><UUID FileName=\"" + name +
         "\">urn:uuid:" + name + "</UUID></TiffData>";
}

struct Image {
  std::string name;
  int width;
  int height;
  std::string mpp;
  std::string data;
  std::string before = {};
};

class Fixture {
 public:
  SlideInfo info(const std::vector<Image>& images, const std::string& before = "") {
    std::string text = "<OME xmlns=\"x\" UUID=\"urn:uuid:slide.tif\">";
    text += before;
    for (const Image& image : images) {
      text += "<Image Name=\"" + image.name + "\">" + image.before + "<Pixels SizeX=\"" + std::to_string(image.width) +
              "\" SizeY=\"" + std::to_string(image.height) + "\" SizeC=\"1\" SizeZ=\"1\" SizeT=\"1\" PhysicalSizeX=\"" +
              image.mpp + "\" PhysicalSizeY=\"" + image.mpp + "\"><Channel ID=\"c\" SamplesPerPixel=\"1\"/>" +
              image.data + "</Pixels></Image>";
    }
    tiff.directories[0].set_text(270, text + "</OME>");
    path = folder.write("slide.tif", tiff.bytes());
    return Slide::open(path)->info();
  }

  TemporaryFolder folder;
  std::filesystem::path path;
  TestTiff tiff;
};

void check(const SlideInfo& info, const std::string& name, double mpp, const Lines& warnings) {
  CAPTURE(name);
  CHECK(info.properties.at("name") == name);
  CHECK(info.mpp == mpp);
  CHECK(info.channels.empty());
  CHECK(info.warnings == warnings);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "an Image that says that its pixels aren't in the file owns no directory") {
  for (const std::string& data : {no_pixels, std::string("<BinData Length=\"0\"/>")}) {
    CAPTURE(data);
    tiff.directories = {view(400, 240)};
    // Its objective isn't the slide's, either.
    const std::string objectives =
        "<Instrument><Objective ID=\"a\" NominalMagnification=\"40\"/>"
        "<Objective ID=\"b\" NominalMagnification=\"20\"/></Instrument>";
    SlideInfo found = info({{"none", 400, 240, "0.25", data, "<ObjectiveSettings ID=\"a\"/>"},
                            {"good", 400, 240, "0.5", at(0), "<ObjectiveSettings ID=\"b\"/>"}},
                           objectives);
    check(found, "good", 0.5, {});
    CHECK(found.magnification == 20.0);
    // One without TiffData is the next directory.
    found = info({{"none", 400, 240, "0.25", data}, {"good", 400, 240, "0.5", ""}});
    check(found, "good", 0.5, {});
    check(info({{"none", 900, 700, "0.25", data}, {"good", 400, 240, "0.5", at(0)}}), "good", 0.5, {});
    tiff.directories = {view(400, 240), view(400, 240, 120)};
    check(info({{"none", 400, 240, "0.1", data}, {"A", 400, 240, "0.25", at(0)}, {"B", 400, 240, "0.5", at(1)}}), "A",
          0.25, {"holds 2 images, and one is read"});
  }
}

TEST_CASE_FIXTURE(Fixture, "the slide is the first Image that has a directory, whatever those without one are") {
  tiff.directories = {view(800, 480), view(400, 240, 120)};
  const SlideInfo found =
      info({{"none", 400, 240, "0.25", no_pixels}, {"A", 800, 480, "0.5", at(0)}, {"B", 400, 240, "1", at(1)}});
  check(found, "A", 0.5, {"holds 2 images, and one is read"});
  REQUIRE(found.levels.size() == 1);
  CHECK(found.levels[0].width == 800);
  // A directory that no Image names isn't read.
  tiff.directories = {view(400, 240, 120), view(400, 240)};
  check(info({{"none", 400, 240, "0.25", no_pixels}, {"good", 400, 240, "0.5", at(1)}}), "good", 0.5,
        {"its OME-XML doesn't name 1 of its images of the slide's size: they aren't read"});
  CHECK(read_level(*Slide::open(path)).front() == 200);
  // Only one called a label has a directory: that directory is read, and nothing else describes it.
  tiff.directories = {view(400, 240)};
  const std::string named = declares_none + ": image 1, which names directory 0, is read";
  check(info({{"none", 400, 240, "0.25", no_pixels}, {"label", 400, 240, "0.5", at(0)}}), "label", 0.5, {named});
  // No Image has one: the largest directory is read, as the Image of its size says.
  check(info({{"none", 400, 240, "0.25", no_pixels}}), "none", 0.25, {declares_none});
}

TEST_CASE_FIXTURE(Fixture, "an Image of another file of a set, or of a directory that isn't there, describes nothing") {
  const std::string passed = "image 0 of its OME-XML has no directory here: image 1 is read";
  tiff.directories = {view(400, 240)};
  const Image here{"here", 400, 240, "0.5", in_file("slide.tif", 0)};
  for (const std::string& data : {in_file("file1.tif", 0), in_file("file1.tif", 7), at(5)}) {
    CAPTURE(data);
    check(info({{"away", 400, 240, "0.25", data}, here}), "here", 0.5, {passed});
    check(info({{"away", 900, 700, "0.25", data}, here}), "here", 0.5, {passed});
  }
  // In the first file it is the slide, and the other isn't counted.
  check(info({here, {"away", 400, 240, "0.25", in_file("file2.tif", 0)}}), "here", 0.5, {});
  // Another Image's directory is no level.
  tiff.directories = {view(800, 480), view(400, 240)};
  const SlideInfo found = info({{"away", 800, 480, "0.25", in_file("file1.tif", 0)},
                                {"here", 800, 480, "0.5", in_file("slide.tif", 0)},
                                {"third", 400, 240, "1", in_file("slide.tif", 1)}});
  check(found, "here", 0.5, {"holds 2 images, and one is read", passed});
  CHECK(found.levels.size() == 1);
}
