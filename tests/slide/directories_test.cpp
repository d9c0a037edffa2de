#include <doctest/doctest.h>

#include <algorithm>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <tuple>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

TestDirectory level(std::uint32_t width, std::uint32_t height) {
  TestDirectory directory = tiled_directory(width, height, 64, 64, 1);
  const std::size_t tiles = std::size_t{(width + 63) / 64} * ((height + 63) / 64);
  directory.tiles.assign(tiles, Bytes(64 * 64));
  return directory;
}

TestDirectory strips(std::uint32_t width, std::uint32_t height) {
  TestDirectory directory = stripped_directory(width, height, height, 1);
  directory.tiles = {Bytes(width * height)};
  return directory;
}

std::string sizes(const SlideInfo& info) {
  std::string text;
  for (const Level& l : info.levels) text += std::to_string(l.width) + "x" + std::to_string(l.height) + " ";
  return text;
}

class Fixture {
 public:
  std::shared_ptr<const Slide> open() { return Slide::open(folder.write("slide.tif", tiff.bytes())); }
  std::string error() { return open_error(folder.write("slide.tif", tiff.bytes())); }

  TemporaryFolder folder;
  TestTiff tiff;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "levels are the tiled directories of level 0's shape, largest first") {
  tiff.directories = {level(1000, 600), strips(100, 60), level(250, 150),
                      level(500, 301),  level(500, 400),  // another shape
                      level(1000, 500),                   // not smaller
                      level(500, 301),                    // one of these sizes is there already
                      strips(30, 30)};
  CHECK(sizes(open()->info()) == "1000x600 500x301 250x150 ");
  CHECK(open()->info().levels[2].downsample == doctest::Approx(4.0));
  CHECK(open()->info().associated.size() == 5);
}

TEST_CASE_FIXTURE(Fixture, "of two images of a level's size the first counts, and a line says so of the second") {
  tiff.directories = {level(1000, 600), level(500, 300), level(500, 300), level(250, 150), level(250, 150)};
  const SlideInfo info = open()->info();
  CHECK(sizes(info) == "1000x600 500x300 250x150 ");
  CHECK(info.associated == std::vector<std::string>{"image 2", "image 4"});
  CHECK(info.warnings == std::vector<std::string>{
                             "the image of 500 x 300 pixels has the size of a level before it: it isn't read, nor 1 "
                             "smaller"});
}

TEST_CASE_FIXTURE(Fixture, "level 0 is the largest directory, wherever it stands") {
  tiff.directories = {level(500, 300), level(1000, 600), level(250, 150)};
  CHECK(sizes(open()->info()) == "1000x600 500x300 250x150 ");
  // Also where it has strips.
  tiff.directories.insert(tiff.directories.begin() + 1, strips(2000, 1200));
  CHECK(sizes(open()->info()) == "2000x1200 1000x600 500x300 250x150 ");
}

TEST_CASE_FIXTURE(Fixture, "small levels may be off by 2 pixels, and thin slides by any share") {
  tiff.directories = {level(9000, 100), level(141, 3), level(70, 1), level(70, 20)};
  CHECK(sizes(open()->info()) == "9000x100 141x3 70x1 ");
}

TEST_CASE_FIXTURE(Fixture, "without tiled directories the largest is the only level") {
  tiff.directories = {strips(100, 60), strips(200, 120), strips(50, 30)};
  CHECK(sizes(open()->info()) == "200x120 ");
  CHECK_FALSE(open()->info().levels[0].tiled);
}

TEST_CASE_FIXTURE(Fixture, "SubIFDs of the first tiled directory are levels, those of others aren't") {
  tiff.directories = {level(1000, 600), level(900, 100)};
  tiff.directories[0].subs = {level(500, 300), level(250, 150), level(333, 100)};
  tiff.directories[1].subs = {level(125, 75)};
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

namespace {

/// A plane whose samples are all `value`, with SubIFDs of the same.
TestDirectory plane(std::uint32_t width, std::uint32_t height, std::uint8_t value, bool with_subs) {
  TestDirectory directory = level(width, height);
  for (Bytes& tile : directory.tiles) std::ranges::fill(tile, std::byte{value});
  if (with_subs) directory.subs = {plane(width / 2, height / 2, value, false)};
  return directory;
}

const std::string four_channels =
    "<?xml version=\"1.0\"?><OME xmlns=\"x\"><Image><Pixels SizeX=\"200\" SizeC=\"4\" SizeZ=\"1\" SizeT=\"1\">"
    "<Channel ID=\"0\" Name=\"DAPI\" SamplesPerPixel=\"1\"/><Channel ID=\"1\" Name=\"FITC\"/>"
    "<Channel ID=\"2\" Name=\"Cy3 &amp; x\"/><Channel ID=\"3\" Name=\"Cy5\"/></Pixels></Image></OME>";

}  // namespace

TEST_CASE_FIXTURE(Fixture, "planes of several channels are refused by name, unless one is chosen") {
  bool with_subs = false;
  SUBCASE("smaller levels in the main chain") { with_subs = false; }
  SUBCASE("smaller levels as SubIFDs") { with_subs = true; }
  for (const int value : {10, 20, 30, 40}) {
    tiff.directories.push_back(plane(200, 120, static_cast<std::uint8_t>(value), with_subs));
  }
  if (!with_subs) {
    // Smaller levels behind: one of each plane, in their order.
    for (const int value : {10, 20, 30, 40}) {
      tiff.directories.push_back(plane(100, 60, static_cast<std::uint8_t>(value), false));
    }
  }
  tiff.directories[0].set_text(270, four_channels);
  CHECK(error().ends_with("has 4 channels (DAPI, FITC, Cy3 & x, Cy5); set input.channel to choose one, 0 to 3"));
  // Of a long name the beginning, without half a character.
  std::string long_name = four_channels;
  std::string name;
  for (int i = 0; i < 200; ++i) name += "é";
  long_name.replace(long_name.find("DAPI"), 4, name);
  tiff.directories[0].set_text(270, long_name);
  CHECK(error().find(" (" + name.substr(0, 60) + "..., FITC, ") != std::string::npos);
  tiff.directories[0].set_text(270, four_channels);
  const auto path = folder.write("slide.tif", tiff.bytes());
  for (int channel = 0; channel < 4; ++channel) {
    const auto slide = Slide::open(path, {.channel = channel});
    CHECK(slide->info().channels == std::vector<std::string>{"DAPI", "FITC", "Cy3 & x", "Cy5"});
    CHECK(slide->info().format == "ome-tiff");
    CHECK(sizes(slide->info()) == "200x120 100x60 ");
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<std::uint8_t> pixels = read_level(*slide, i);
      CHECK(std::ranges::count(pixels, 10 * (channel + 1)) == std::ssize(pixels));
    }
  }
  CHECK(open_error(path, {.channel = 4}).ends_with("input.channel is 4; it has 4 channels (DAPI, FITC, Cy3 & x, Cy5)"));
  CHECK(open_error(path, {.channel_name = "channel"}).ends_with("set channel to choose one, 0 to 3"));
}

TEST_CASE_FIXTURE(Fixture, "channels of a QPTIFF have the names that their directories say") {
  const auto text = [](const std::string& name) {
    return "<?xml version=\"1.0\" encoding=\"utf-16\"?><PerkinElmer-QPI-ImageDescription><ImageType>FullResolution"
           "</ImageType>" +
           name + "<ScanProfile><Name>a profile</Name></ScanProfile></PerkinElmer-QPI-ImageDescription>";
  };
  tiff.directories = {level(100, 60), level(100, 60)};
  tiff.directories[0].set_text(270, text("<Name>DAPI</Name>"));
  tiff.directories[1].set_text(270, text("<Name> FITC</Name>"));
  CHECK(error().ends_with("has 2 channels (DAPI, FITC); set input.channel to choose one, 0 to 1"));
  // All or none.
  tiff.directories[1].set_text(270, text(""));
  CHECK(error().ends_with("has 2 channels; set input.channel to choose one, 0 to 1"));
}

TEST_CASE_FIXTURE(Fixture, "planes without names, in depth, and in other files count as channels") {
  // Pages of one size, tiled or not, say nothing of what they are.
  tiff.directories = {level(100, 60), level(100, 60)};
  CHECK(error().ends_with("has 2 channels; set input.channel to choose one, 0 to 1"));
  tiff.directories = {strips(100, 60), strips(100, 60), strips(100, 60)};
  CHECK(error().ends_with("has 3 channels; set input.channel to choose one, 0 to 2"));
  // Those that say that they are reduced images or masks are no planes.
  tiff.directories[1].set_short(254, 1);
  tiff.directories[2].set_short(254, 4);
  CHECK(error().empty());
  const auto declare = [&](const std::string& sizes) {
    tiff.directories = {level(100, 60)};
    tiff.directories[0].set_text(270, "<OME xmlns=\"x\"><Pixels SizeX=\"100\" " + sizes + "/></OME>");
  };
  declare("SizeC=\"1\" SizeZ=\"5\" SizeT=\"2\"");
  const std::string ten =
      "has 10 channels (0: z 0, t 0; 1: z 1, t 0; 2: z 2, t 0; 3: z 3, t 0; 4: z 4, t 0; 5: z 0, t 1; 6: z 1, t 1; "
      "7: z 2, t 1; ...), of which the file holds the first";
  CHECK(error().ends_with(ten + "; set input.channel to choose one, 0"));
  CHECK(open_error(folder.write("slide.tif", tiff.bytes()), {.channel = 0}).empty());
  CHECK(open_error(folder.write("slide.tif", tiff.bytes()), {.channel = 1}).ends_with("input.channel is 1; it " + ten));
  for (const char* sizes : {"SizeC=\"1\"", "SizeC=\"x\" SizeZ=\"-3\"", ""}) {
    declare(sizes);
    CHECK(error().empty());
  }
  for (const char* sizes : {"SizeC=\"1e30\" SizeT=\"1\"", "SizeC=\"70000\"", "SizeZ=\"70000\"", "SizeT=\"65537\"",
                            "SizeC=\"9999999\" SizeZ=\"9999999\" SizeT=\"9999999\""}) {
    declare(sizes);
    CHECK(error().ends_with("its OME-XML declares more than 65536 planes"));
  }
  declare("SizeC=\"3\"");
  CHECK(error().ends_with("set input.channel to choose one, 0"));  // three grey planes elsewhere
  tiff.directories = {tiled_directory(100, 60, 64, 64, 3)};
  tiff.directories[0].tiles.assign(2, Bytes(64 * 64 * 3));
  tiff.directories[0].set_text(270, "<OME xmlns=\"x\"><Pixels SizeX=\"100\" SizeC=\"3\"/></OME>");
  CHECK(error().empty());
  CHECK(open_error(folder.write("slide.tif", tiff.bytes()), {.channel = 0})
            .ends_with("input.channel is 0, but its pixels are RGB; leave it out"));
  tiff.directories = {level(100, 60)};
  CHECK(open_error(folder.write("slide.tif", tiff.bytes()), {.channel = 0}).empty());
  CHECK(open_error(folder.write("slide.tif", tiff.bytes()), {.channel = 1})
            .ends_with("input.channel is 1; it has one channel, 0"));
}

TEST_CASE_FIXTURE(Fixture, "a pixel size that is given makes the magnification") {
  tiff.directories = {level(100, 60)};
  const auto path = [&] { return folder.write("slide.tif", tiff.bytes()); };
  CHECK_FALSE(Slide::open(path())->info().magnification.has_value());
  const SlideInfo by_default = Slide::open(path(), {.mpp_default = 0.25})->info();
  CHECK(by_default.mpp.value() == 0.25);
  CHECK(by_default.magnification.value() == 40.0);
  tiff.directories[0].set_text(270, "Aperio\n|MPP = 0.25|AppMag = 40");
  const SlideInfo own = Slide::open(path(), {.mpp_default = 0.5})->info();
  CHECK(own.mpp.value() == 0.25);
  CHECK(own.magnification.value() == 40.0);
  const SlideInfo given = Slide::open(path(), {.mpp = 0.5, .mpp_default = 1.0})->info();
  CHECK(given.mpp.value() == 0.5);
  CHECK(given.magnification.value() == 20.0);
}

TEST_CASE_FIXTURE(Fixture, "label, macro and thumbnail are never levels") {
  tiff.directories = {level(1000, 600), strips(100, 60), level(500, 300), level(250, 150), level(200, 120)};
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

TEST_CASE_FIXTURE(Fixture, "names of images that are no levels are words in any case") {
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
    tiff.directories = {level(1000, 600), level(500, 300), level(250, 150)};
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
    tiff.directories = {level(1000, 600), level(500, 300), level(250, 150)};
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
    tiff.directories = {level(1000, 600), level(500, 300), level(250, 150)};
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
  tiff.directories = {level(1000, 600), level(500, 300), level(250, 150)};
  // The slide itself may be described by any words, and smaller levels repeat them.
  for (const char* text : {"macro", "label 1000x600", "Aperio Image Library\r\nmacro 1000x600"}) {
    CAPTURE(text);
    for (TestDirectory& directory : tiff.directories) directory.set_text(270, text);
    CHECK(sizes(open()->info()) == "1000x600 500x300 250x150 ");
    CHECK(open()->info().associated.empty());
  }
}

TEST_CASE_FIXTURE(Fixture, "masks, macro images and what Aperio calls reduced are no levels by their types") {
  tiff.directories = {level(1000, 600), level(500, 300), level(250, 150)};
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

TEST_CASE_FIXTURE(Fixture, "levels are whole times as small as level 0") {
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
    tiff.directories = {level(1000, 600), level(candidate.width, candidate.height)};
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

TEST_CASE_FIXTURE(Fixture, "an image of the slide's shape that shows something else is no level") {
  tiff.directories = {level(1600, 960), level(400, 240), level(200, 120)};
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

TEST_CASE_FIXTURE(Fixture, "codecs that aren't named as supported are refused, also of images beside the slide") {
  for (const std::uint64_t compression : {34661U, 3U, 4U, 34676U, 32909U}) {
    CAPTURE(compression);
    tiff.directories = {level(100, 60)};
    tiff.directories[0].set_short(259, compression);
    CHECK(error().find("Compression " + std::to_string(compression) + " isn't supported") != std::string::npos);
    tiff.directories = {level(1000, 600), level(50, 60)};
    tiff.directories[1].set_short(259, compression);
    const auto slide = open();
    REQUIRE(slide->info().associated.size() == 1);
    CHECK_THROWS_WITH_AS(slide->read_associated(0),
                         doctest::Contains(("compression " + std::to_string(compression)).c_str()), SlideError);
  }
}

TEST_CASE_FIXTURE(Fixture, "directory loops fail") {
  tiff.directories = {level(100, 60), level(50, 30)};
  for (const int to : {0, 1}) {
    tiff.loop_to = to;
    CHECK(error().find("directories form a loop") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture, "a SubIFD that is its own parent adds no level") {
  tiff.directories = {level(100, 60)};
  tiff.directories[0].set(330, long_, {1});
  CHECK(error().find("directory at byte 1 ") != std::string::npos);
  // The directory's place doesn't depend on the value.
  Bytes bytes = tiff.bytes();
  std::uint64_t at = 0;
  for (int i = 3; i >= 0; --i) at = at << 8 | std::to_integer<std::uint64_t>(bytes[4 + static_cast<std::size_t>(i)]);
  tiff.directories[0].set(330, long_, {at});
  CHECK(sizes(open()->info()) == "100x60 ");
}

TEST_CASE_FIXTURE(Fixture, "directories outside the file or absurdly large fail") {
  tiff.directories = {level(100, 60)};
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

TEST_CASE_FIXTURE(Fixture, "a fault of an image that isn't a level doesn't matter") {
  tiff.directories = {level(100, 60), strips(50, 30)};
  tiff.directories[1].set_short(259, 6).remove(273).remove(279);
  tiff.directories[1].tiles.clear();
  CHECK(sizes(open()->info()) == "100x60 ");
}

TEST_CASE_FIXTURE(Fixture, "OME-XML with several images, or a label first, gives a warning") {
  tiff.directories = {level(100, 60)};
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

TEST_CASE_FIXTURE(Fixture, "OME-XML whose Type isn't that of the samples gives a line") {
  tiff.directories = {level(100, 60)};
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

TEST_CASE_FIXTURE(Fixture, "OME-XML names its image, its maker and what annotations say") {
  tiff.directories = {level(100, 60)};
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
