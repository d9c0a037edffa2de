// Which directory of a TIFF file is what by its OME-XML.

#include <doctest/doctest.h>

#include <algorithm>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/structure_fixture.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

std::string image(int number, std::uint32_t width, std::uint32_t height, const std::string& name,
                  const std::string& data = "") {
  return "<Image ID=\"Image:" + std::to_string(number) + "\" Name=\"" + name + "\"><Pixels SizeX=\"" +
         std::to_string(width) + "\" SizeY=\"" + std::to_string(height) +
         "\" SizeC=\"1\" SizeZ=\"1\" SizeT=\"1\" DimensionOrder=\"XYCZT\"><Channel ID=\"c\" SamplesPerPixel=\"1\"/>" +
         data + "</Pixels></Image>";
}

std::string tiff_data(int directory) {
  return "<TiffData IFD=\"" + std::to_string(directory) + "\" PlaneCount=\"1\"/>";
}

class Fixture : public StructureFixture {
 public:
  void describe(const std::string& images) {
    tiff.directories[0].set_text(270, "<?xml version=\"1.0\"?><OME xmlns=\"x\">" + images + "</OME>");
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "in OME-TIFF words of an Image's name say that it is no level") {
  tiff.directories = {view(1600, 960), view(800, 480), label(400, 240)};
  for (const char* name : {"slide_label", "Label-1", "LabelImage", "&#xFEFF;label"}) {
    CAPTURE(name);
    describe(image(0, 1600, 960, "slide", tiff_data(0)) + image(1, 400, 240, name, tiff_data(2)));
    CHECK(found() == "1600x960 800x480 | label");
    CHECK(warnings().empty());
  }
}

TEST_CASE_FIXTURE(Fixture, "an image holds labels if slidestream wrote it and calls its channel so") {
  tiff.directories = {view(1600, 960)};
  const auto is_of_labels = [this](const std::string& channel, const std::string& space) {
    describe(
        "<Image ID=\"Image:0\"><Pixels SizeX=\"1600\" SizeY=\"960\" SizeC=\"1\" SizeZ=\"1\" SizeT=\"1\" "
        "DimensionOrder=\"XYCZT\"><Channel ID=\"c\" SamplesPerPixel=\"1\" Name=\"" +
        channel +
        "\"/><TiffData IFD=\"0\" PlaneCount=\"1\"/></Pixels></Image><StructuredAnnotations><MapAnnotation "
        "ID=\"a\" Namespace=\"" +
        space + "\"><Value><M K=\"a\">1</M></Value></MapAnnotation></StructuredAnnotations>");
    return open()->info().labels;
  };
  for (const char* channel : {"classes", "labels", "tissue"}) {
    CAPTURE(channel);
    CHECK(is_of_labels(channel, "slidestream"));
    CHECK_FALSE(is_of_labels(channel, "openmicroscopy.org/omero"));
  }
  CHECK_FALSE(is_of_labels("image", "slidestream"));
  CHECK_FALSE(is_of_labels("DAPI", "slidestream"));
}

TEST_CASE_FIXTURE(Fixture, "in OME-TIFF an image that another Image claims is no level") {
  tiff.directories = {view(1600, 960), label(400, 240), label(200, 120), view(800, 480)};
  describe(image(0, 1600, 960, "a", tiff_data(0)) + image(1, 400, 240, "label image", tiff_data(1)) +
           image(2, 200, 120, "b", tiff_data(2)));
  CHECK(found() == "1600x960 800x480 | label image 2");
  CHECK(warnings() == Lines{"holds 3 images, and one is read"});
  // Without TiffData images follow each other.
  describe(image(0, 1600, 960, "a") + image(1, 400, 240, "label") + image(2, 200, 120, "macro"));
  CHECK(found() == "1600x960 800x480 | label macro");
  CHECK(warnings().empty());
}

TEST_CASE_FIXTURE(Fixture, "in OME-TIFF the first Image that isn't called a label is the slide") {
  tiff.directories = {label(400, 240), view(800, 480), view(1600, 960)};
  describe(image(0, 400, 240, "label image", tiff_data(0)) + image(1, 800, 480, "a", tiff_data(1)) +
           image(2, 1600, 960, "b", tiff_data(2)));
  CHECK(found() == "800x480 | label image 2");
  CHECK(warnings() == Lines{"holds 3 images, and one is read, which isn't the largest"});
  // TiffData says which directory that is, in any order.
  tiff.directories = {view(1600, 960), label(400, 240), view(800, 480)};
  describe(image(0, 800, 480, "a", tiff_data(2)) + image(1, 400, 240, "label", tiff_data(1)) +
           image(2, 1600, 960, "b", tiff_data(0)));
  CHECK(found() == "800x480 | image 0 label");
}

TEST_CASE_FIXTURE(Fixture, "in OME-TIFF the largest Image is the slide whatever it is called, if it has its shape") {
  const std::string called = "its largest image is read as the slide, though its OME-XML calls it ";
  tiff.directories = {view(1600, 960), view(400, 240)};
  for (const std::string name : {"overview", "macro", "label", "thumbnail"}) {
    CAPTURE(name);
    describe(image(0, 1600, 960, name, tiff_data(0)) + image(1, 400, 240, "ROI", tiff_data(1)));
    CHECK(found() == "1600x960 | image 1");
    CHECK(warnings() == Lines{called + name, "holds 2 images, and one is read"});
  }
  // Of images that all are called so.
  describe(image(0, 1600, 960, "macro", tiff_data(0)) + image(1, 400, 240, "label", tiff_data(1)));
  CHECK(found() == "1600x960 | label");
  CHECK(warnings() == Lines{called + "macro"});
  std::swap(tiff.directories[0], tiff.directories[1]);
  describe(image(0, 400, 240, "label", tiff_data(0)) + image(1, 1600, 960, "macro", tiff_data(1)));
  CHECK(found() == "1600x960 | label");
  // A small region beside the macro image of the whole glass.
  tiff.directories = {view(400, 240), label(1280, 430)};
  describe(image(0, 400, 240, "ROI", tiff_data(0)) + image(1, 1280, 430, "macro image", tiff_data(1)));
  CHECK(found() == "400x240 | macro");
  CHECK(warnings() == Lines{"holds 2 images, and one is read, which isn't the largest"});
  // One as large that isn't called so is the slide.
  tiff.directories = {label(1600, 960), view(1600, 960)};
  describe(image(0, 1600, 960, "label", tiff_data(0)) + image(1, 1600, 960, "a", tiff_data(1)));
  CHECK(found() == "1600x960 | label");
  CHECK(warnings() == Lines{});
}

TEST_CASE_FIXTURE(Fixture, "where OME-XML and a directory's size differ, the size counts, and a line says so") {
  // A thumbnail was put in front, and the numbers weren't changed.
  tiff.directories = {label(210, 120), view(1600, 960), view(800, 480)};
  describe(image(0, 1600, 960, "a", tiff_data(0)));
  CHECK(found() == "1600x960 800x480 | image 0");
  CHECK(warnings() == Lines{"its OME-XML says 1600 x 960 pixels, and directory 0 has 210 x 120: directory 1, which has "
                            "them, is read"});
  tiff.directories = {view(1600, 960), view(800, 480)};
  describe(image(0, 1601, 960, "a", tiff_data(0)));
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings() ==
        Lines{"its OME-XML says 1601 x 960 pixels, and directory 0 has 1600 x 960: the directory counts"});
  describe(image(0, 1600, 960, "a", tiff_data(7)));
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings() == Lines{"the image that its OME-XML declares isn't there"});
}

TEST_CASE_FIXTURE(Fixture,
                  "of OME-XML that stayed when images were taken out, the image of the directory's size counts") {
  const auto sized = [](std::string image, const std::string& mpp) {
    image.insert(image.find("SizeX"), "PhysicalSizeX=\"" + mpp + "\" PhysicalSizeY=\"" + mpp + "\" ");
    return image;
  };
  const std::string gone = sized(image(0, 1600, 960, "a", tiff_data(0)), "0.25");
  tiff.directories = {view(800, 480)};
  describe(gone + sized(image(1, 800, 480, "b", tiff_data(1)), "0.5"));
  CHECK(found() == "800x480 |");
  CHECK(open()->info().mpp == 0.5);
  CHECK(open()->info().properties.at("name") == "b");
  CHECK(warnings() ==
        Lines{"holds 2 images, and one is read, which isn't the largest",
              "its OME-XML says 1600 x 960 pixels, and directory 0 has 800 x 480: image 1 of the OME-XML, "
              "which has that size, describes it"});
  describe(gone);
  CHECK_FALSE(open()->info().mpp.has_value());
  CHECK_FALSE(open()->info().properties.contains("name"));
  CHECK(warnings() == Lines{"its OME-XML says 1600 x 960 pixels, and directory 0 has 800 x 480: the directory counts, "
                            "and that image's pixel size, magnification and name don't"});
  describe(sized(image(0, 1600, 960, "a", tiff_data(7)), "0.25"));
  CHECK_FALSE(open()->info().mpp.has_value());
  // Of nearly that size.
  describe(sized(image(0, 801, 480, "a", tiff_data(0)), "0.25"));
  CHECK(open()->info().mpp == 0.25);
}

TEST_CASE_FIXTURE(Fixture, "planes come in the order that OME-XML gives them, and others are named") {
  tiff.directories = {view(400, 240), view(400, 240), view(400, 240)};
  for (std::size_t i = 0; i < 3; ++i) {
    for (Bytes& tile : tiff.directories[i].tiles) std::ranges::fill(tile, static_cast<std::byte>(10 * (i + 1)));
  }
  const std::string pixels =
      "<Image><Pixels SizeX=\"400\" SizeY=\"240\" SizeC=\"2\" DimensionOrder=\"XYCZT\"><Channel Name=\"a\"/><Channel "
      "Name=\"b\"/><TiffData FirstC=\"1\" IFD=\"0\"/><TiffData FirstC=\"0\" IFD=\"2\"/></Pixels></Image>";
  describe(pixels);
  const auto path = write();
  for (int channel = 0; channel < 2; ++channel) {
    const auto slide = Slide::open(path, {.channel = channel});
    CHECK(read_level(*slide).front() == (channel == 0 ? 30 : 10));
    CHECK(slide->info().channels == Lines{"a", "b"});
    CHECK(slide->info().warnings == Lines{"its OME-XML doesn't name 1 of its images of the slide's size: they aren't "
                                          "read"});
  }
  // A plane that lies in another file isn't this file's next directory.
  describe(
      "<Image><Pixels SizeX=\"400\" SizeY=\"240\" SizeC=\"2\"><Channel/><Channel/><TiffData FirstC=\"0\" IFD=\"1\">"
      "<UUID FileName=\"slide.tif\">urn:uuid:1</UUID></TiffData><TiffData FirstC=\"1\" IFD=\"0\"><UUID "
      "FileName=\"other.tif\">urn:uuid:2</UUID></TiffData></Pixels></Image>");
  CHECK(
      error().ends_with("has 2 channels, of which the file holds the first, and 1 lies in other.tif; set input.channel "
                        "to choose one, 0"));
}

TEST_CASE_FIXTURE(Fixture, "of two directories that OME-XML gives to one plane the last counts, with a line") {
  tiff.directories = {view(400, 240), view(400, 240), view(400, 240)};
  for (std::size_t i = 0; i < 3; ++i) {
    for (Bytes& tile : tiff.directories[i].tiles) std::ranges::fill(tile, static_cast<std::byte>(10 * (i + 1)));
  }
  const auto declare = [&](const std::string& last) {
    describe(
        "<Image><Pixels SizeX=\"400\" SizeY=\"240\" SizeC=\"2\" DimensionOrder=\"XYCZT\"><Channel Name=\"a\"/>"
        "<Channel Name=\"b\"/><TiffData FirstC=\"0\" IFD=\"0\"/><TiffData FirstC=\"1\" IFD=\"1\"/>" +
        last + "</Pixels></Image>");
    return open({.channel = 0});
  };
  const auto twice = declare("<TiffData FirstC=\"0\" IFD=\"2\"/>");
  CHECK(read_level(*twice).front() == 30);
  CHECK(twice->info().warnings ==
        Lines{"its OME-XML gives plane 0 of the slide directory 0 and directory 2: the last one counts"});
  const auto same = declare("<TiffData FirstC=\"0\" IFD=\"0\"/>");
  CHECK(read_level(*same).front() == 10);
  CHECK(same->info().warnings ==
        Lines{"its OME-XML doesn't name 1 of its images of the slide's size: they aren't read"});
}

TEST_CASE_FIXTURE(Fixture, "a directory that OME-XML gives to two planes gets a line") {
  tiff.directories = {view(400, 240)};
  describe(
      "<Image><Pixels SizeX=\"400\" SizeY=\"240\" SizeC=\"2\"><Channel Name=\"a\"/><Channel Name=\"b\"/>"
      "<TiffData FirstC=\"0\" IFD=\"0\"/><TiffData FirstC=\"1\" IFD=\"0\"/></Pixels></Image>");
  CHECK(open({.channel = 0})->info().warnings ==
        Lines{"its OME-XML gives directory 0 to plane 0 of the slide and to plane 1: it is read as plane 0"});
}

TEST_CASE_FIXTURE(Fixture, "a file of a set that the text doesn't name is refused: its plane isn't known") {
  tiff.directories = {view(400, 240)};
  for (const std::string axis : {"C", "Z"}) {
    const auto part = [&](int plane, const std::string& file) {
      return "<TiffData First" + axis + "=\"" + std::to_string(plane) + "\" IFD=\"0\"><UUID FileName=\"" + file +
             "\">urn:uuid:" + file + "</UUID></TiffData>";
    };
    describe("<Image><Pixels SizeX=\"400\" SizeY=\"240\" Size" + axis + "=\"2\">" + part(0, "a.tif") +
             part(1, "b.tif") + "</Pixels></Image>");
    const auto path = write();
    const std::string refusal =
        ", which lie in other files by its OME-XML (0 lies in a.tif, 1 in b.tif), and which of them this file is isn't "
        "known";
    for (const int channel : {-1, 0, 1}) CHECK(open_error(path, {.channel = channel}).ends_with(refusal));
    CHECK(Slide::open(path, {.channel = OpenOptions::any_channel})->info().channels.size() == 2);
    CHECK(Slide::open(path, {.channel = OpenOptions::any_channel})->info().held_channels == std::vector<std::size_t>());
  }
}

TEST_CASE_FIXTURE(Fixture, "samples that OME-XML names in another order than red, green, blue get a line") {
  TestDirectory directory = tiled_directory(100, 60, 64, 64, 3);
  directory.tiles.assign(2, Bytes(std::size_t{3} * 64 * 64));
  tiff.directories = {directory};
  const auto lines = [&](const Lines& names) {
    std::string channels;
    for (const std::string& name : names) channels += "<Channel Name=\"" + name + "\" SamplesPerPixel=\"1\"/>";
    describe("<Image><Pixels SizeX=\"100\" SizeY=\"60\" SizeC=\"3\">" + channels + "</Pixels></Image>");
    return open()->info().warnings;
  };
  CHECK(lines({"Red", "Green", "Blue"}) == Lines{});
  CHECK(lines({"Blue", "Green", "Red"}) ==
        Lines{"its OME-XML calls the samples of a pixel Blue, Green and Red: they are read as the tags say"});
}

TEST_CASE_FIXTURE(Fixture, "a file of a set holds the channels that OME-XML says, and a line names the other files") {
  tiff.directories = {view(400, 240)};
  const auto part = [](int channel, const std::string& file) {
    return "<TiffData FirstC=\"" + std::to_string(channel) + "\" IFD=\"0\" PlaneCount=\"1\"><UUID FileName=\"" + file +
           "\">urn:uuid:" + std::to_string(channel) + "</UUID></TiffData>";
  };
  const auto declare = [&](const Lines& names, const std::string& parts) {
    std::string channels;
    for (const std::string& name : names) channels += "<Channel Name=\"" + name + "\"/>";
    describe("<Image><Pixels SizeX=\"400\" SizeY=\"240\" SizeC=\"3\">" + channels + parts + "</Pixels></Image>");
    return write();
  };
  const std::string parts = part(0, "a.tif") + part(1, "slide.tif") + part(2, "c.tif");
  // Red, green and blue in three files are no picture of this one.
  for (const Lines& names : {Lines{"A", "B", "C"}, Lines{"Red", "Green", "Blue"}}) {
    const auto path = declare(names, parts);
    const std::string three = "has 3 channels (" + names[0] + ", " + names[1] + ", " + names[2] +
                              "), of which the file holds 1, and 0 lies in a.tif, 2 in c.tif";
    CHECK(error().ends_with(three + "; set input.channel to choose one, 1"));
    CHECK(open_error(path, {.channel = 7}).ends_with("input.channel is 7; it " + three));
    CHECK(open_error(path, {.channel = 0}).ends_with("input.channel is 0, which lies in a.tif; this file holds 1"));
    CHECK(open_error(path, {.channel = 2}).ends_with("input.channel is 2, which lies in c.tif; this file holds 1"));
    for (const int channel : {1, OpenOptions::any_channel}) {
      const auto slide = Slide::open(path, {.channel = channel});
      CHECK(read_level(*slide).front() == slide_at(0, 0, 4.0));
      CHECK(slide->info().channels == names);
      CHECK(slide->info().held_channels == std::vector<std::size_t>{1});
      CHECK(slide->info().warnings == Lines{});
    }
  }
  // Two of them here, in another order, and none of the third.
  tiff.directories = {view(400, 240), label(400, 240)};
  const auto path =
      declare({"A", "B", "C"}, part(0, "a.tif") + part(2, "slide.tif") +
                                   "<TiffData FirstC=\"1\" IFD=\"1\"><UUID FileName=\"slide.tif\">u</UUID>"
                                   "</TiffData>");
  CHECK(
      error().ends_with(", of which the file holds 1, 2, and 0 lies in a.tif; set input.channel to choose one, 1, 2"));
  CHECK(read_level(*Slide::open(path, {.channel = 1})).front() == label_at(0, 0));
  CHECK(read_level(*Slide::open(path, {.channel = 2})).front() == slide_at(0, 0, 4.0));
}

TEST_CASE_FIXTURE(Fixture, "planes of several depths and times are named as they are counted") {
  const auto names = [&](const std::string& sizes, const std::string& channels) {
    describe("<Image><Pixels SizeX=\"400\" SizeY=\"240\" " + sizes + ">" + channels + "</Pixels></Image>");
    return open({.channel = 0})->info().channels;
  };
  tiff.directories.assign(4, view(400, 240));
  const std::string two = "<Channel Name=\"A\"/><Channel Name=\"B\"/>";
  const std::string deep = "SizeC=\"2\" SizeZ=\"2\" SizeT=\"1\" ";
  CHECK(names(deep + "DimensionOrder=\"XYZCT\"", two) == Lines{"A, z 0", "A, z 1", "B, z 0", "B, z 1"});
  CHECK(error().ends_with(
      "has 4 channels (0: A, z 0; 1: A, z 1; 2: B, z 0; 3: B, z 1); set input.channel to choose one, 0 to 3"));
  CHECK(names(deep + "DimensionOrder=\"XYCZT\"", two) == Lines{"A, z 0", "B, z 0", "A, z 1", "B, z 1"});
  CHECK(names(deep + "DimensionOrder=\"XYZCT\"", "") == Lines{"c 0, z 0", "c 0, z 1", "c 1, z 0", "c 1, z 1"});
  const std::string moving = "SizeC=\"1\" SizeZ=\"2\" SizeT=\"2\" DimensionOrder=\"XYTZC\"";
  CHECK(names(moving, "") == Lines{"z 0, t 0", "z 0, t 1", "z 1, t 0", "z 1, t 1"});
  CHECK(names(moving, "<Channel Name=\"A\"/>") == Lines{"A, z 0, t 0", "A, z 0, t 1", "A, z 1, t 0", "A, z 1, t 1"});
  CHECK(names("SizeC=\"4\" SizeZ=\"1\" SizeT=\"1\"", "") == Lines{"0", "1", "2", "3"});
}

TEST_CASE_FIXTURE(Fixture, "numbers in OME-XML that no file has cost nothing") {
  tiff.directories = {view(400, 240), view(400, 240)};
  const auto declare = [&](const std::string& sizes, const std::string& data) {
    describe("<Image><Pixels SizeX=\"400\" SizeY=\"240\" " + sizes + ">" + data + "</Pixels></Image>");
  };
  declare("SizeC=\"65536\" SizeZ=\"65536\" SizeT=\"65536\"", "");
  CHECK(error().ends_with("its OME-XML declares more than 65536 planes"));
  declare("SizeC=\"1\"", "<TiffData IFD=\"0\" PlaneCount=\"999999999999\"/>");
  CHECK(found() == "400x240 | image 1");
  declare("SizeC=\"60000\"", "<TiffData FirstC=\"59999\" IFD=\"1\"/>");
  CHECK(error().ends_with(", of which the file holds 59999; set input.channel to choose one, 59999"));
  std::string many;
  for (int i = 0; i < 3000; ++i) many += "<Image><Pixels SizeC=\"9\"><TiffData PlaneCount=\"9\"/></Pixels></Image>";
  describe(many);
  CHECK(error().ends_with("set input.channel to choose one, 0 to 1"));
}

TEST_CASE_FIXTURE(Fixture, "samples of one directory that OME-XML calls channels are one image") {
  tiff.directories = {tiled_directory(100, 60, 64, 64, 3)};
  tiff.directories[0].tiles.assign(2, Bytes(64 * 64 * 3));
  describe(
      "<Image><Pixels SizeX=\"100\" SizeY=\"60\" SizeC=\"3\"><Channel/><Channel/><Channel/><TiffData "
      "IFD=\"0\"/></Pixels></Image>");
  CHECK(found() == "100x60 |");
}
