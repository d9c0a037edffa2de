#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include "slide/tiff_fixture.hpp"

using namespace slidestream;
using namespace slidestream::test;

TEST_CASE_FIXTURE(TiffFixture, "levels are the tiled directories of level 0's shape, largest first") {
  tiff.directories = {black_level(1000, 600), black_strip(100, 60),  black_level(250, 150),
                      black_level(500, 301),  black_level(500, 400),  // another shape
                      black_level(1000, 500),                         // not smaller
                      black_level(500, 301),                          // one of these sizes is there already
                      black_strip(30, 30)};
  CHECK(sizes(open()->info()) == "1000x600 500x301 250x150 ");
  CHECK(open()->info().levels[2].downsample == doctest::Approx(4.0));
  CHECK(open()->info().associated.size() == 5);
}

TEST_CASE_FIXTURE(TiffFixture, "of two images of a level's size the first counts, and a line says so of the second") {
  tiff.directories = {black_level(1000, 600), black_level(500, 300), black_level(500, 300), black_level(250, 150),
                      black_level(250, 150)};
  const SlideInfo info = open()->info();
  CHECK(sizes(info) == "1000x600 500x300 250x150 ");
  CHECK(info.associated == std::vector<std::string>{"image 2", "image 4"});
  CHECK(info.warnings == std::vector<std::string>{
                             "the image of 500 x 300 pixels has the size of a level before it: it isn't read, nor 1 "
                             "smaller"});
}

TEST_CASE_FIXTURE(TiffFixture, "level 0 is the largest directory, wherever it stands") {
  tiff.directories = {black_level(500, 300), black_level(1000, 600), black_level(250, 150)};
  CHECK(sizes(open()->info()) == "1000x600 500x300 250x150 ");
  // Also where it has strips.
  tiff.directories.insert(tiff.directories.begin() + 1, black_strip(2000, 1200));
  CHECK(sizes(open()->info()) == "2000x1200 1000x600 500x300 250x150 ");
}

TEST_CASE_FIXTURE(TiffFixture, "small levels may be off by 2 pixels, and thin slides by any share") {
  tiff.directories = {black_level(9000, 100), black_level(141, 3), black_level(70, 1), black_level(70, 20)};
  CHECK(sizes(open()->info()) == "9000x100 141x3 70x1 ");
}

TEST_CASE_FIXTURE(TiffFixture, "without tiled directories the largest is the only level") {
  tiff.directories = {black_strip(100, 60), black_strip(200, 120), black_strip(50, 30)};
  CHECK(sizes(open()->info()) == "200x120 ");
  CHECK_FALSE(open()->info().levels[0].tiled);
}

TEST_CASE_FIXTURE(TiffFixture, "SubIFDs of the first tiled directory are levels, those of others aren't") {
  tiff.directories = {black_level(1000, 600), black_level(900, 100)};
  tiff.directories[0].subs = {black_level(500, 300), black_level(250, 150), black_level(333, 100)};
  tiff.directories[1].subs = {black_level(125, 75)};
  for (const bool big : {false, true}) {
    for (const bool big_endian : {false, true}) {
      tiff.big = big;
      tiff.big_endian = big_endian;
      CHECK(sizes(open()->info()) == "1000x600 500x300 250x150 ");
      CHECK(open()->info().container == (big ? "BigTIFF" : "TIFF"));
      CHECK(read_level(*open(), 1).size() == 500 * 300);
    }
  }
}

TEST_CASE_FIXTURE(TiffFixture, "a pixel size that is given makes the magnification") {
  tiff.directories = {black_level(100, 60)};
  CHECK_FALSE(open()->info().magnification.has_value());
  const SlideInfo by_default = open({.mpp_default = 0.25})->info();
  CHECK(by_default.mpp.value() == 0.25);
  CHECK(by_default.magnification.value() == 40.0);
  tiff.directories[0].set_text(270, "Aperio\n|MPP = 0.25|AppMag = 40");
  const SlideInfo own = open({.mpp_default = 0.5})->info();
  CHECK(own.mpp.value() == 0.25);
  CHECK(own.magnification.value() == 40.0);
  const SlideInfo given = open({.mpp = 0.5, .mpp_default = 1.0})->info();
  CHECK(given.mpp.value() == 0.5);
  CHECK(given.magnification.value() == 20.0);
}

TEST_CASE_FIXTURE(TiffFixture, "label, macro and thumbnail are never levels") {
  tiff.directories = {black_level(1000, 600), black_strip(100, 60), black_level(500, 300), black_level(250, 150),
                      black_level(200, 120)};
  SUBCASE("described") {
    tiff.directories[0].set_text(270, "Aperio Image Library v1\r\n1000x600 [0,0 1000x600] (64x64)|MPP = 0.25");
    tiff.directories[2].set_text(270, "Aperio Image Library v1\r\nlabel 500x300");
    tiff.directories[3].set_text(270, "Aperio Image Library v1\r\nmacro 250x150");
  }
  SUBCASE("by type alone") {
    tiff.directories.erase(tiff.directories.begin() + 2);
    tiff.directories[2].set(254, long_, {9});
  }
  const auto slide = open();
  CHECK(sizes(slide->info()) == "1000x600 200x120 ");
  CHECK(slide->info().associated.front() == "thumbnail");
  CHECK(slide->info().associated.back() == "macro");
}

TEST_CASE_FIXTURE(TiffFixture, "names of images that are no levels are words in any case") {
  for (const char* text : {"Label",
                           "LABEL",
                           "Aperio Image Library\r\nLabel 500x300",
                           "Aperio\nmacro of this|MPP = 1",
                           "Overview: 1",
                           "Barcode image",
                           "Thumbnail",
                           "label 500x300|AppMag = 20",
                           "Macro\n",
                           "Scanner 2.0\nlabel 500x300",
                           "LABEL_IMAGE",
                           "Label-1",
                           "slide_label",
                           "MacroImage",
                           "LABELImage",
                           "label2",
                           "Label500x300",
                           "slide label",
                           "_macro_:",
                           "Scanner 2.0\nslide_label 500x300",
                           "Aperio Image Library\r\nLabel_1 500x300",
                           "\xef\xbb\xbflabel",
                           "\xef\xbb\xbf"
                           "Aperio Image Library\r\nlabel 500x300"}) {
    CAPTURE(text);
    tiff.directories = {black_level(1000, 600), black_level(500, 300), black_level(250, 150)};
    tiff.directories[1].set_text(270, text);
    CHECK(sizes(open()->info()) == "1000x600 250x150 ");
  }
  for (const char* text : {"labelled",
                           "Aperio Image Library\r\n500x300 (64x64)|Title = label",
                           "<OME><Label/></OME>",
                           "",
                           "a-label-b",
                           "macrophages, CD68",
                           "macro phages",
                           "label-free",
                           "Label free imaging",
                           "slide with a macro",
                           "Aperio Image Library\r\nmacrophages 500x300",
                           "Aperio Image Library\r\n500x300 label",
                           "Aperio label",
                           "two\nlines\nlabel",
                           "labeled",
                           "unlabeled_1",
                           "CD68_macrophages",
                           "Macrophages1",
                           "macroPhages",
                           "label2b",
                           "Ki67-label",
                           "MACROimage",
                           "slide",
                           "slide_1",
                           "image-2",
                           "-",
                           "labelimage",
                           "Aperio Image Library\r\nlabel_free 500x300"}) {
    CAPTURE(text);
    tiff.directories = {black_level(1000, 600), black_level(500, 300), black_level(250, 150)};
    tiff.directories[1].set_text(270, text);
    CHECK(sizes(open()->info()) == "1000x600 500x300 250x150 ");
  }
  // QPTIFF says it by its ImageType. Levels are ReducedResolution.
  const auto qptiff = [](const std::string& root, const std::string& type) {
    return "<?xml version=\"1.0\" encoding=\"utf-16\"?><" + root +
           "><DescriptionVersion>3</DescriptionVersion><ImageType>" + type +
           "</ImageType><Objective>20x</Objective></" + root + ">";
  };
  const std::string root = "PerkinElmer-QPI-ImageDescription";
  for (const char* type : {"Label", "Overview", "Thumbnail"}) {
    CAPTURE(type);
    tiff.directories = {black_level(1000, 600), black_level(500, 300), black_level(250, 150)};
    tiff.directories[0].set_text(270, qptiff(root, "FullResolution"));
    tiff.directories[1].set_text(270, qptiff(root, type));
    tiff.directories[2].set_text(270, qptiff(root, "ReducedResolution"));
    CHECK(sizes(open()->info()) == "1000x600 250x150 ");
    std::string name = type;
    name[0] = static_cast<char>(name[0] | 0x20);
    CHECK(open()->info().associated == std::vector<std::string>{name});
    tiff.directories[1].set_text(270, qptiff("Others", type));
    CHECK(sizes(open()->info()) == "1000x600 500x300 250x150 ");
  }
  tiff.directories = {black_level(1000, 600), black_level(500, 300), black_level(250, 150)};
  // The slide itself may be described by any words, and smaller levels repeat them.
  for (const char* text : {"macro", "label 1000x600", "Aperio Image Library\r\nmacro 1000x600"}) {
    CAPTURE(text);
    for (TestDirectory& directory : tiff.directories) directory.set_text(270, text);
    CHECK(sizes(open()->info()) == "1000x600 500x300 250x150 ");
    CHECK(open()->info().associated.empty());
  }
}

TEST_CASE_FIXTURE(TiffFixture, "masks, macro images and what Aperio calls reduced are no levels by their types") {
  tiff.directories = {black_level(1000, 600), black_level(500, 300), black_level(250, 150)};
  const auto found = [this](std::uint64_t type) {
    tiff.directories[1].set(254, long_, {type});
    return sizes(open()->info());
  };
  CHECK(found(0) == "1000x600 500x300 250x150 ");
  CHECK(found(1) == "1000x600 500x300 250x150 ");
  CHECK(found(4) == "1000x600 250x150 ");
  CHECK(found(8) == "1000x600 250x150 ");
  tiff.directories[0].set_text(270, "Aperio Image Library v1\r\n1000x600 (64x64)|MPP = 0.25");
  CHECK(found(0) == "1000x600 500x300 250x150 ");
  CHECK(found(1) == "1000x600 250x150 ");
}

TEST_CASE_FIXTURE(TiffFixture, "levels are whole times as small as level 0") {
  struct Candidate {
    unsigned width;
    unsigned height;
    bool is_level;
  };
  for (const Candidate& candidate : {Candidate{500, 300, true},
                                     {333, 200, true},
                                     {400, 240, false},
                                     {667, 400, false},
                                     {800, 480, false},
                                     {63, 38, true}}) {
    CAPTURE(candidate.width);
    tiff.directories = {black_level(1000, 600), black_level(candidate.width, candidate.height)};
    CHECK((open()->info().levels.size() == 2) == candidate.is_level);
  }
}

namespace {

/// Fills tiles with what `value` says of a pixel.
template <class Value>
void paint(TestDirectory& directory, std::int64_t width, const Value& value) {
  const std::int64_t columns = (width + 63) / 64;
  for (std::size_t i = 0; i < directory.tiles.size(); ++i) {
    const auto tile = static_cast<std::int64_t>(i);
    for (std::int64_t at = 0; at < 64 * 64; ++at) {
      const std::int64_t x = tile % columns * 64 + at % 64;
      const std::int64_t y = tile / columns * 64 + at / 64;
      directory.tiles[i][static_cast<std::size_t>(at)] = static_cast<std::byte>(value(x, y));
    }
  }
}

/// A white slide with a dark spot, whose pixels are `factor` of level 0's.
auto slide_of(int factor) {
  return [factor](std::int64_t x, std::int64_t y) {
    const std::int64_t from_x = x * factor - 700;
    const std::int64_t from_y = y * factor - 300;
    return from_x * from_x + from_y * from_y < 200 * 200 ? 80 + static_cast<int>(x * factor / 16 % 5) * 20 : 240;
  };
}

/// White paper with dark signs.
int label_of(std::int64_t x, std::int64_t y) { return y / 8 % 3 == 1 && (x / 3 + y / 5) % 3 == 0 ? 20 : 250; }

}  // namespace

TEST_CASE_FIXTURE(TiffFixture, "an image of the slide's shape that shows something else is no level") {
  tiff.directories = {black_level(1600, 960), black_level(400, 240), black_level(200, 120)};
  paint(tiff.directories[0], 1600, slide_of(1));
  paint(tiff.directories[1], 400, slide_of(4));
  paint(tiff.directories[2], 200, slide_of(8));
  CHECK(sizes(open()->info()) == "1600x960 400x240 200x120 ");
  CHECK(open()->info().warnings.empty());
  for (const std::size_t place : {1U, 2U}) {
    paint(tiff.directories[place], place == 1 ? 400 : 200, label_of);
    const auto slide = open();
    CHECK(sizes(slide->info()) == (place == 1 ? "1600x960 200x120 " : "1600x960 400x240 "));
    REQUIRE(slide->info().warnings.size() == 1);
    CHECK(slide->info().warnings[0].find("isn't like the slide: it is no level") != std::string::npos);
    CHECK(slide->info().associated.size() == 1);
    CHECK(slide->read_associated(0).size.width == (place == 1 ? 400 : 200));
    CHECK(slide->info().levels[1].downsample == doctest::Approx(place == 1 ? 8.0 : 4.0));
    CHECK(read_level(*slide, 1).size() == static_cast<std::size_t>(place == 1 ? 200 * 120 : 400 * 240));
    paint(tiff.directories[place], place == 1 ? 400 : 200, slide_of(place == 1 ? 4 : 8));
  }
}

TEST_CASE_FIXTURE(TiffFixture, "codecs that aren't named as supported are refused, also of images beside the slide") {
  for (const std::uint64_t compression : {34661U, 3U, 4U, 34676U, 32909U}) {
    CAPTURE(compression);
    tiff.directories = {black_level(100, 60)};
    tiff.directories[0].set_short(259, compression);
    CHECK(error().find("Compression " + std::to_string(compression) + " isn't supported") != std::string::npos);
    tiff.directories = {black_level(1000, 600), black_level(50, 60)};
    tiff.directories[1].set_short(259, compression);
    const auto slide = open();
    REQUIRE(slide->info().associated.size() == 1);
    CHECK_THROWS_WITH_AS(slide->read_associated(0),
                         doctest::Contains(("compression " + std::to_string(compression)).c_str()), SlideError);
  }
}

TEST_CASE_FIXTURE(TiffFixture, "directory loops fail") {
  tiff.directories = {black_level(100, 60), black_level(50, 30)};
  for (const int to : {0, 1}) {
    tiff.loop_to = to;
    CHECK(error().find("directories form a loop") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(TiffFixture, "a SubIFD that is its own parent adds no level") {
  tiff.directories = {black_level(100, 60)};
  tiff.directories[0].set(330, long_, {1});
  CHECK(error().find("directory at byte 1 ") != std::string::npos);
  // The directory's place doesn't depend on the value.
  Bytes bytes = tiff.bytes();
  std::uint64_t at = 0;
  for (int i = 3; i >= 0; --i) at = at << 8 | std::to_integer<std::uint64_t>(bytes[4 + static_cast<std::size_t>(i)]);
  tiff.directories[0].set(330, long_, {at});
  CHECK(sizes(open()->info()) == "100x60 ");
}

TEST_CASE_FIXTURE(TiffFixture, "directories outside the file or absurdly large fail") {
  tiff.directories = {black_level(100, 60)};
  Bytes bytes = tiff.bytes();
  SUBCASE("first directory beyond the end") {
    bytes[6] = std::byte{0xFF};
    CHECK(open_error(folder.write("a.tif", bytes)).find("lies outside the file") != std::string::npos);
  }
  SUBCASE("cut inside the directory") {
    bytes.resize(bytes.size() - 10);
    CHECK(open_error(folder.write("a.tif", bytes)).find("cut by the end of the file") != std::string::npos);
  }
  SUBCASE("too many SubIFDs") {
    tiff.directories[0].set(330, long_, std::vector<std::uint64_t>(5000, 8));
    CHECK(error().find("SubIFDs has 5000 values") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(TiffFixture, "a fault of an image that isn't a level doesn't matter") {
  tiff.directories = {black_level(100, 60), black_strip(50, 30)};
  tiff.directories[1].set_short(259, 6).remove(273).remove(279);
  tiff.directories[1].tiles.clear();
  CHECK(sizes(open()->info()) == "100x60 ");
}

TEST_CASE_FIXTURE(TiffFixture, "OME-XML with several images, or a label first, gives a warning") {
  tiff.directories = {black_level(100, 60)};
  const auto warnings = [&](const std::string& images) {
    tiff.directories[0].set_text(270, "<OME xmlns=\"x\">" + images + "</OME>");
    return open()->info().warnings;
  };
  const std::string slide = "<Image ID=\"Image:0\" Name=\"a\"></Image>";
  CHECK(warnings(slide).empty());
  CHECK(warnings(slide + "<Image ID=\"Image:1\" Name=\"label image\"/><Image Name=\"Macro\"/>").empty());
  CHECK(warnings(slide + slide + "<Image ID=\"Image:2\"></Image><Image Name=\"label\"/>") ==
        std::vector<std::string>{"holds 4 images, and one is read"});
  CHECK(warnings("<Image ID=\"Image:0\" Name=\"label image\"/>" + slide).size() == 1);
  CHECK(warnings(slide + slide + "<Image Name=\"b").size() == 1);
}

TEST_CASE_FIXTURE(TiffFixture, "OME-XML whose Type isn't that of the samples gives a line") {
  tiff.directories = {black_level(100, 60)};
  const auto warnings = [&](const std::string& attribute) {
    const std::string pixels = "<Pixels " + attribute + " SizeX=\"100\" SizeY=\"60\"/>";
    const std::string label = "<Image Name=\"label\"><Pixels Type=\"float\"/></Image>";
    tiff.directories[0].set_text(270, "<OME xmlns=\"x\"><Image Name=\"a\">" + pixels + "</Image>" + label + "</OME>");
    return open()->info().warnings;
  };
  using Lines = std::vector<std::string>;
  CHECK(warnings("").empty());
  CHECK(warnings("Type=\"uint8\"").empty());
  const std::string end = ", and its samples have 8 bits: the tags count";
  CHECK(warnings("Type=\"uint16\"") == Lines{"its OME-XML says that Type is uint16" + end});
  CHECK(warnings("Type=\"double-complex\"") == Lines{"its OME-XML says that Type is double-complex" + end});
  CHECK(warnings("Type=\"Jane Doe\"") == Lines{"its OME-XML says that Type is an unknown value" + end});
}

TEST_CASE_FIXTURE(TiffFixture, "OME-XML names its image, its maker and what annotations say") {
  tiff.directories = {black_level(100, 60)};
  const auto properties = [&](const std::string& xml) {
    tiff.directories[0].set_text(270, "<?xml version=\"1.0\"?>\n" + xml);
    return open()->info().properties;
  };
  using Properties = std::map<std::string, std::string>;
  CHECK(properties("<OME xmlns=\"x\" Creator=\"a 1.0\"><Image ID=\"Image:0\" Name=\"b &lt;&amp;lt;&gt;\"></Image>"
                   "<M K=\"c\">d &quot;e&quot;</M><M K=\"f\"></M></OME>") ==
        Properties{{"creator", "a 1.0"}, {"name", "b <&lt;>"}, {"c", "d \"e\""}, {"f", ""}});
  for (const char* text : {"<OME ", "<OME Creator=\"", "<OME x><Image Name=\"", "<OME x><M K=\"a", "<OME x><M K=\"a\">",
                           "<OME x></M><M K=\"a\"", "<OME x><M K=\"\">a</M>", "<OME x>&lt;&"}) {
    CHECK(properties(text).empty());
  }
}
