// Which Image of OME-XML describes the directory that is read: the one whose TiffData names it.

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

const std::string no_pixels = "<MetadataOnly/>";
const std::string declares_none = "the image that its OME-XML declares isn't there";

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
    std::string text = "<OME xmlns=\"x\"" + uuid + ">" + before;
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
  std::string uuid = " UUID=\"urn:uuid:slide.tif\"";
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
    tiff.directories = {chequered_directory(400, 240)};
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
    tiff.directories = {chequered_directory(400, 240), chequered_directory(400, 240, 120)};
    check(info({{"none", 400, 240, "0.1", data}, {"A", 400, 240, "0.25", at(0)}, {"B", 400, 240, "0.5", at(1)}}), "A",
          0.25, {"holds 2 images, and one is read"});
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "without an UUID of its own a file is what its name says, or was renamed if there is one name") {
  uuid.clear();
  tiff.directories = {chequered_directory(400, 240)};
  const std::string other = "image 0 of its OME-XML has no directory here: image 1 is read";
  check(
      info({{"there", 400, 240, "0.25", in_file("other.tif", 0)}, {"here", 400, 240, "0.5", in_file("slide.tif", 0)}}),
      "here", 0.5, {other});
  check(
      info({{"here", 400, 240, "0.25", in_file("slide.tif", 0)}, {"there", 400, 240, "0.5", in_file("other.tif", 0)}}),
      "here", 0.25, {});
  check(info({{"A", 400, 240, "0.25", in_file("before.tif", 0)}}), "A", 0.25, {});
  tiff.directories = {chequered_directory(400, 240), chequered_directory(400, 240, 120)};
  check(info({{"A", 400, 240, "0.25", in_file("before.tif", 0)}, {"B", 400, 240, "0.5", in_file("before.tif", 1)}}),
        "A", 0.25, {"holds 2 images, and one is read"});
}

TEST_CASE_FIXTURE(Fixture, "a file is the one of its name behind a path, or in other letters") {
  uuid.clear();
  tiff.directories = {chequered_directory(400, 240)};
  const std::string other = "image 0 of its OME-XML has no directory here: image 1 is read";
  for (const char* name : {"./slide.tif", "C:\\x\\slide.tif", "/x/y/slide.tif", "Slide.TIF", "x/s%6Cide%2etif"}) {
    CAPTURE(name);
    check(info({{"there", 400, 240, "0.25", in_file("other.tif", 0)}, {"here", 400, 240, "0.5", in_file(name, 0)}}),
          "here", 0.5, {other});
  }
  // The same letters go before others.
  check(
      info({{"there", 400, 240, "0.25", in_file("SLIDE.tif", 0)}, {"here", 400, 240, "0.5", in_file("slide.tif", 0)}}),
      "here", 0.5, {other});
}

TEST_CASE_FIXTURE(Fixture, "beside TiffData without UUID, which lies in this file, other names are other files") {
  uuid.clear();
  tiff.directories = {chequered_directory(400, 240)};
  const Image there{"there", 400, 240, "0.25", in_file("before.tif", 0)};
  const Image here{"here", 400, 240, "0.5", at(0)};
  check(info({there, here}), "here", 0.5, {"image 0 of its OME-XML has no directory here: image 1 is read"});
  check(info({here, there}), "here", 0.5, {});
}

TEST_CASE_FIXTURE(Fixture, "UUIDs are the same in other letters, and without their prefix") {
  tiff.directories = {chequered_directory(400, 240)};
  const auto says = [](const std::string& text) {
    return "<TiffData IFD=\"0\" PlaneCount=\"1\"><UUID FileName=\"before.tif\">" + text + "</UUID></TiffData>";
  };
  const std::string other = "image 0 of its OME-XML has no directory here: image 1 is read";
  for (const char* own : {"urn:uuid:0a1B", "0A1b", "URN:UUID:0A1B", " urn:uuid:0a1b "}) {
    CAPTURE(own);
    uuid = std::string(" UUID=\"") + own + "\"";
    for (const char* text : {"urn:uuid:0a1b", "urn:uuid:0A1B", "0a1b", "Urn:Uuid:0A1b", " 0a1B "}) {
      CAPTURE(text);
      check(info({{"there", 400, 240, "0.25", says("urn:uuid:0a1c")}, {"here", 400, 240, "0.5", says(text)}}), "here",
            0.5, {other});
    }
  }
  // One that is written in two ways is one file, also where this file has none.
  uuid.clear();
  const auto only = [](const std::string& text) {
    return "<TiffData IFD=\"0\" PlaneCount=\"1\"><UUID>" + text + "</UUID></TiffData>";
  };
  check(info({{"a", 400, 240, "0.25", only("urn:uuid:0a1b")}, {"b", 400, 240, "0.25", only("0A1B")}}), "a", 0.25,
        {"holds 2 images, and one is read"});
}

TEST_CASE_FIXTURE(Fixture, "which of several Images a file is that none of them names isn't known") {
  uuid.clear();
  tiff.directories = {chequered_directory(400, 240)};
  const std::string unknown =
      "which Image this file is isn't known: its OME-XML names other files, and images 0 and 1 differ in pixel size: "
      "pixel size, magnification and name don't count";
  const auto only = [](const std::string& text) {
    return "<TiffData IFD=\"0\" PlaneCount=\"1\"><UUID>" + text + "</UUID></TiffData>";
  };
  const auto pair = [&](const std::string& a, const std::string& b, const std::string& mpp) {
    return info({{"a", 400, 240, "0.25", a}, {"b", 400, 240, mpp, b}});
  };
  // Of one last name the same.
  for (const auto& files : {std::pair{in_file("a.tif", 0), in_file("b.tif", 0)},
                            std::pair{in_file("x/slide.tif", 0), in_file("y/slide.tif", 0)},
                            std::pair{only("urn:uuid:1"), only("urn:uuid:2")}}) {
    const auto& a = files.first;
    const auto& b = files.second;
    CAPTURE(a);
    const SlideInfo found = pair(a, b, "0.5");
    CHECK_FALSE(found.mpp.has_value());
    CHECK_FALSE(found.properties.contains("name"));
    CHECK(found.warnings == Lines{unknown, declares_none});
    CHECK(pair(a, b, "0.25").mpp == 0.25);
    CHECK(pair(a, b, "0.25").warnings == Lines{declares_none});
  }
  // One UUID is one file.
  check(pair(only("urn:uuid:1"), only("urn:uuid:1"), "0.25"), "a", 0.25, {"holds 2 images, and one is read"});
  // The size tells.
  check(info({{"a", 900, 700, "0.25", in_file("a.tif", 0)}, {"b", 400, 240, "0.5", in_file("b.tif", 0)}}), "b", 0.5,
        {declares_none + ", and directory 0 has 400 x 240 pixels: image 1 of the OME-XML, which has that size, "
                         "describes it"});
}

TEST_CASE_FIXTURE(Fixture, "the slide is the first Image that has a directory, whatever those without one are") {
  tiff.directories = {chequered_directory(800, 480), chequered_directory(400, 240, 120)};
  const SlideInfo found =
      info({{"none", 400, 240, "0.25", no_pixels}, {"A", 800, 480, "0.5", at(0)}, {"B", 400, 240, "1", at(1)}});
  check(found, "A", 0.5, {"holds 2 images, and one is read"});
  REQUIRE(found.levels.size() == 1);
  CHECK(found.levels[0].width == 800);
  // A directory that no Image names isn't read.
  tiff.directories = {chequered_directory(400, 240, 120), chequered_directory(400, 240)};
  check(info({{"none", 400, 240, "0.25", no_pixels}, {"good", 400, 240, "0.5", at(1)}}), "good", 0.5,
        {"its OME-XML doesn't name 1 of its images of the slide's size: they aren't read"});
  CHECK(read_level(*Slide::open(path)).front() == 200);
  // Only one called a label has a directory: that directory is read, and nothing else describes it.
  tiff.directories = {chequered_directory(400, 240)};
  const std::string named = declares_none + ": image 1, which names directory 0, is read";
  check(info({{"none", 400, 240, "0.25", no_pixels}, {"label", 400, 240, "0.5", at(0)}}), "label", 0.5, {named});
  // No Image has one: the largest directory is read, as the Image of its size says.
  check(info({{"none", 400, 240, "0.25", no_pixels}}), "none", 0.25, {declares_none});
}

TEST_CASE_FIXTURE(Fixture, "an Image of another file of a set, or of a directory that isn't there, describes nothing") {
  const std::string passed = "image 0 of its OME-XML has no directory here: image 1 is read";
  tiff.directories = {chequered_directory(400, 240)};
  const Image here{"here", 400, 240, "0.5", in_file("slide.tif", 0)};
  for (const std::string& data : {in_file("file1.tif", 0), in_file("file1.tif", 7), at(5)}) {
    CAPTURE(data);
    check(info({{"away", 400, 240, "0.25", data}, here}), "here", 0.5, {passed});
    check(info({{"away", 900, 700, "0.25", data}, here}), "here", 0.5, {passed});
  }
  // In the first file it is the slide, and the other isn't counted.
  check(info({here, {"away", 400, 240, "0.25", in_file("file2.tif", 0)}}), "here", 0.5, {});
  // Another Image's directory is no level.
  tiff.directories = {chequered_directory(800, 480), chequered_directory(400, 240)};
  const SlideInfo found = info({{"away", 800, 480, "0.25", in_file("file1.tif", 0)},
                                {"here", 800, 480, "0.5", in_file("slide.tif", 0)},
                                {"third", 400, 240, "1", in_file("slide.tif", 1)}});
  check(found, "here", 0.5, {"holds 2 images, and one is read", passed});
  CHECK(found.levels.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "planes keep their numbers and names where the first one is missing") {
  const auto declare = [&](const std::map<int, int>& directories) {
    std::string data;
    for (const auto& [plane, directory] : directories) {
      data += "<TiffData FirstC=\"" + std::to_string(plane) + "\" IFD=\"" + std::to_string(directory) +
              "\" PlaneCount=\"1\"/>";
    }
    tiff.directories[0].set_text(270,
                                 "<OME xmlns=\"x\"><Image><Pixels SizeX=\"400\" SizeY=\"240\" SizeC=\"3\" "
                                 "DimensionOrder=\"XYCZT\"><Channel Name=\"A\"/><Channel Name=\"B\"/>"
                                 "<Channel Name=\"C\"/>" +
                                     data + "</Pixels></Image></OME>");
    path = folder.write("slide.tif", tiff.bytes());
  };
  const auto pixel = [&](int channel) { return read_level(*Slide::open(path, {.channel = channel})).front(); };
  const std::string three = "has 3 channels (A, B, C), of which the file holds ";
  tiff.directories = {chequered_directory(400, 240, 120), chequered_directory(400, 240, 160)};
  // The last one gives the first plane a directory that isn't there.
  for (const std::map<int, int>& planes :
       {std::map<int, int>{{1, 0}, {2, 1}}, {{1, 1}, {2, 0}}, {{0, 7}, {1, 0}, {2, 1}}}) {
    declare(planes);
    CHECK(open_error(path).ends_with(three + "1, 2; set input.channel to choose one, 1, 2"));
    CHECK(open_error(path, {.channel = 0}).ends_with("input.channel is 0; it " + three + "1, 2"));
    CHECK(pixel(1) == (planes.at(1) == 0 ? 120 : 160));
    CHECK(pixel(2) == (planes.at(2) == 0 ? 120 : 160));
    CHECK(pixel(OpenOptions::any_channel) == pixel(1));
    CHECK(Slide::open(path, {.channel = 2})->info().channels == Lines{"A", "B", "C"});
    CHECK(Slide::open(path, {.channel = 2})->info().held_channels == std::vector<std::size_t>{1, 2});
  }
  declare({{0, 1}, {1, 0}});
  CHECK(open_error(path).ends_with(three + "the first 2; set input.channel to choose one, 0 to 1"));
  CHECK(Slide::open(path, {.channel = 0})->info().held_channels == std::vector<std::size_t>{0, 1});
  CHECK(pixel(0) == 160);
  CHECK(pixel(1) == 120);
  tiff.directories = {chequered_directory(400, 240, 120)};
  declare({{2, 0}});
  CHECK(open_error(path).ends_with(three + "2; set input.channel to choose one, 2"));
  CHECK(pixel(2) == 120);
  // Counted from 1, against the schema.
  tiff.directories = {chequered_directory(400, 240, 120), chequered_directory(400, 240, 160),
                      chequered_directory(400, 240, 200)};
  declare({{1, 2}, {2, 1}, {3, 0}});
  CHECK(pixel(0) == 200);
  CHECK(pixel(1) == 160);
  CHECK(pixel(2) == 120);
  CHECK(Slide::open(path, {.channel = 0})->info().warnings ==
        Lines{"its OME-XML counts FirstC from 1: planes are counted from 0"});
}

TEST_CASE_FIXTURE(Fixture, "other Images keep their directories and names where the slide's Image has no directory") {
  TestDirectory label = stripped_directory(100, 80, 80, 1);
  label.tiles = {Bytes(100 * 80)};
  const std::string not_largest = "holds 2 images, and one is read, which isn't the largest";
  for (const std::string& data : {no_pixels, at(9)}) {
    CAPTURE(data);
    const Image slide{"slide", 800, 480, "0.5", data};
    const auto others = [&](const Image& other, const Lines& warnings) {
      const SlideInfo found = info({slide, other});
      CHECK(found.levels.size() == 1);
      CHECK(found.levels[0].width == 800);
      check(found, "slide", 0.5, warnings);
      return found.associated;
    };
    tiff.directories = {chequered_directory(800, 480), chequered_directory(400, 240)};
    CHECK(others({"macro", 400, 240, "4", at(1)}, {declares_none}) == Lines{"macro"});
    tiff.directories = {chequered_directory(800, 480), label};
    CHECK(others({"label", 100, 80, "4", at(1)}, {declares_none}) == Lines{"label"});
    // What another Image names is neither the slide nor a channel of it.
    tiff.directories = {chequered_directory(800, 480), chequered_directory(1280, 432)};
    CHECK(others({"macro", 1280, 432, "4", at(1)}, {not_largest, declares_none}) == Lines{"macro"});
    tiff.directories = {chequered_directory(800, 480), chequered_directory(800, 480, 120)};
    CHECK(others({"label", 800, 480, "4", at(1)}, {declares_none}) == Lines{"label"});
  }
  // Images before the slide were taken out, and the text stayed: the numbers are of another file.
  tiff.directories = {chequered_directory(800, 480), chequered_directory(400, 240), chequered_directory(200, 120)};
  const SlideInfo found =
      info({{"label", 100, 80, "4", at(0)}, {"macro", 1280, 432, "4", at(1)}, {"slide", 800, 480, "0.5", at(2)}});
  CHECK(found.levels.size() == 3);
  CHECK(found.associated.empty());
}

TEST_CASE_FIXTURE(Fixture, "of two Images that name one directory with different pixel sizes the slide's counts") {
  tiff.directories = {chequered_directory(400, 240)};
  const std::string several = "holds 2 images, and one is read";
  check(info({{"x", 400, 240, "0.25", ""}, {"y", 400, 240, "0.5", at(0)}}), "x", 0.25,
        {several,
         "image 0 of its OME-XML says 0.25 micrometres per pixel, and image 1 of the same directory 0.5: image 0 of "
         "its OME-XML counts"});
  check(info({{"x", 400, 240, "0.25", at(0)}, {"y", 400, 240, "0.25", at(0)}}), "x", 0.25, {several});
}
