// Which directory of a TIFF file is what: the rules of docs/formats.md, and files that contradict themselves.

#include <doctest/doctest.h>

#include <algorithm>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

constexpr std::uint32_t slide_width = 1600;

/// What is seen at a pixel of an image whose pixels are `factor` of the slide's: blobs of the slide.
std::uint8_t slide_at(std::int64_t x, std::int64_t y, double factor) {
  const auto at = [factor](std::int64_t i) {
    return static_cast<std::int64_t>((static_cast<double>(i) + 0.5) * factor);
  };
  const std::int64_t across = at(x) / 200;
  const std::int64_t down = at(y) / 200;
  return static_cast<std::uint8_t>(40 + (across * 53 + down * 97) % 180);
}

/// Something else: dark signs on white paper.
std::uint8_t label_at(std::int64_t x, std::int64_t y) { return y / 8 % 3 == 1 && (x / 3 + y / 5) % 3 == 0 ? 20 : 250; }

/// An image that shows the slide, in tiles of `side`.
TestDirectory view(std::uint32_t width, std::uint32_t height, bool of_slide = true, std::uint32_t side = 64) {
  TestDirectory directory = tiled_directory(width, height, side, side, 1);
  const double factor = static_cast<double>(slide_width) / width;
  for (std::uint32_t top = 0; top < height; top += side) {
    for (std::uint32_t left = 0; left < width; left += side) {
      Bytes tile(std::size_t{side} * side);
      for (std::uint32_t i = 0; i < side * side; ++i) {
        const std::int64_t x = left + i % side;
        const std::int64_t y = top + i / side;
        tile[i] = static_cast<std::byte>(of_slide ? slide_at(x, y, factor) : label_at(x, y));
      }
      directory.tiles.push_back(std::move(tile));
    }
  }
  return directory;
}

TestDirectory label(std::uint32_t width, std::uint32_t height) { return view(width, height, false); }

TestDirectory strips(std::uint32_t width, std::uint32_t height) {
  TestDirectory directory = stripped_directory(width, height, height, 1);
  directory.tiles = {Bytes(std::size_t{width} * height, std::byte{99})};
  return directory;
}

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

class Fixture {
 public:
  std::shared_ptr<const Slide> open() { return Slide::open(folder.write("slide.tif", tiff.bytes())); }
  std::string error() { return open_error(folder.write("slide.tif", tiff.bytes())); }
  void describe(const std::string& images) {
    tiff.directories[0].set_text(270, "<?xml version=\"1.0\"?><OME xmlns=\"x\">" + images + "</OME>");
  }

  /// Levels' sizes, and behind a bar the associated images' names.
  std::string found() {
    const SlideInfo info = open()->info();
    std::string text;
    for (const Level& l : info.levels) text += std::to_string(l.width) + "x" + std::to_string(l.height) + " ";
    text += "|";
    for (const std::string& name : info.associated) text += " " + name;
    return text;
  }
  Lines warnings() { return open()->info().warnings; }

  TemporaryFolder folder;
  TestTiff tiff;
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

TEST_CASE_FIXTURE(Fixture, "a thumbnail of another scale that is tiled like a level is none, wherever it stands") {
  const std::vector<TestDirectory> pyramid = {view(1600, 960), view(800, 480), view(400, 240)};
  for (std::size_t place = 0; place <= 3; ++place) {
    CAPTURE(place);
    for (const TestDirectory& thumbnail : {label(210, 120), label(210, 126), view(210, 126), view(320, 192)}) {
      tiff.directories = pyramid;
      tiff.directories.insert(tiff.directories.begin() + static_cast<std::ptrdiff_t>(place), thumbnail);
      for (const std::uint64_t type : {0, 1}) {
        tiff.directories[place].set(254, long_, {type});
        CHECK(found() == "1600x960 800x480 400x240 | image " + std::to_string(place));
        CHECK(warnings().empty());
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "several small images of the slide's shape that are no levels get a line") {
  const std::string lost = " pixels has the slide's shape, but is no level of it: it isn't read";
  tiff.directories = {view(1600, 960), view(640, 384), view(256, 154)};
  CHECK(found() == "1600x960 | image 1 image 2");
  CHECK(warnings() == Lines{"the image of 640 x 384" + lost + ", nor 1 more of them"});
  // Behind levels, too; one of a level's size has its own line, and one of another shape is no level anyway.
  tiff.directories = {view(1600, 960), view(800, 480), view(640, 384), view(256, 154), view(100, 154)};
  CHECK(found() == "1600x960 800x480 | image 2 image 3 image 4");
  CHECK(warnings() == Lines{"the image of 640 x 384" + lost + ", nor 1 more of them"});
  tiff.directories = {view(1600, 960), view(640, 384), view(640, 384)};
  CHECK(warnings().empty());
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

TEST_CASE_FIXTURE(Fixture, "levels of plain TIFF are found by their sizes, whatever their order and types") {
  const std::vector<TestDirectory> pyramid = {view(1600, 960), view(800, 480), view(400, 240), view(200, 120)};
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    tiff.directories.clear();
    for (const std::size_t i : order) tiff.directories.push_back(pyramid[i]);
    CHECK(found() == "1600x960 800x480 400x240 200x120 |");
    // Types that are wrong: the slide is called reduced, and no level is.
    for (std::size_t i = 0; i < 4; ++i) tiff.directories[i].set(254, long_, {order[i] == 0 ? 1U : 0U});
    CHECK(found() == "1600x960 800x480 400x240 200x120 |");
  } while (std::next_permutation(order.begin(), order.end()));
  // The largest is the slide even if it is called a mask or a macro image.
  for (const std::uint64_t type : {4, 8, 9}) {
    tiff.directories = pyramid;
    tiff.directories[0].set(254, long_, {type});
    CHECK(found() == "1600x960 800x480 400x240 200x120 |");
    std::swap(tiff.directories[0], tiff.directories[2]);
    CHECK(found() == "1600x960 800x480 400x240 200x120 |");
  }
}

TEST_CASE_FIXTURE(Fixture, "an image of one colour is a level only where the slide has that colour") {
  const auto plain = [](std::uint32_t width, std::uint32_t height, int colour) {
    TestDirectory directory = view(width, height);
    for (Bytes& tile : directory.tiles) std::ranges::fill(tile, static_cast<std::byte>(colour));
    return directory;
  };
  tiff.directories = {view(1600, 960), plain(400, 240, 20), view(800, 480)};
  CHECK(found() == "1600x960 800x480 | image of 400 x 240");
  CHECK(warnings() == Lines{"the image of 400 x 240 pixels isn't like the slide: it is no level"});
  tiff.directories = {plain(1600, 960, 240), plain(800, 480, 241), plain(400, 240, 239)};
  CHECK(found() == "1600x960 800x480 400x240 |");
  // Where nothing is, nothing tells what the others show.
  for (Bytes& tile : tiff.directories[0].tiles) tile.clear();
  CHECK(found() == "1600x960 | image of 800 x 480 image of 400 x 240");
}

TEST_CASE_FIXTURE(Fixture, "an image whose size can't be read may be the slide, and no other passes for it") {
  const auto make = [this](std::size_t damaged, std::uint16_t tag) {
    tiff.directories = {view(1600, 1200), view(800, 600), strips(200, 150)};
    tiff.directories[damaged].remove(tag);
  };
  make(0, 256);
  CHECK(error().find("directory 0: ImageWidth is missing") != std::string::npos);
  make(1, 257);
  CHECK(error().find("directory 1: ImageLength is missing") != std::string::npos);
  tiff.directories[1].set(257, long_, {600, 600});
  CHECK(error().find("directory 1: ImageLength has 2 values, expected 1") != std::string::npos);
  tiff.directories[1].set(257, long_, {0});
  CHECK(error().find("directory 1: ImageLength is 0") != std::string::npos);
  // Strips beside tiles aren't the slide.
  make(2, 256);
  CHECK(found() == "1600x1200 800x600 | image 2");
  CHECK(warnings() == Lines{"directory 2: ImageWidth is missing: it is no level"});
  // Without tiles they may be.
  tiff.directories = {strips(1600, 1200), strips(200, 150)};
  tiff.directories[0].remove(256);
  CHECK(error().find("directory 0: ImageWidth is missing") != std::string::npos);
  // A level among SubIFDs is missed with a line.
  tiff.directories = {view(1600, 1200)};
  tiff.directories[0].subs = {view(800, 600), view(400, 300)};
  tiff.directories[0].subs[0].remove(256);
  CHECK(found() == "1600x1200 400x300 |");
  CHECK(warnings() == Lines{"SubIFD 0: ImageWidth is missing: it is no level"});
}

TEST_CASE_FIXTURE(Fixture, "a mask as large as the slide isn't the slide") {
  tiff.directories = {view(1600, 960), view(1600, 960), view(800, 480)};
  tiff.directories[0].set(254, long_, {4});
  std::swap(tiff.directories[0], tiff.directories[2]);
  CHECK(found() == "1600x960 800x480 | mask");
  // In the first directory, too, and by PhotometricInterpretation alone.
  std::swap(tiff.directories[0], tiff.directories[2]);
  CHECK(found() == "1600x960 800x480 | mask");
  tiff.directories[0].remove(254).set_short(262, 4);
  CHECK(found() == "1600x960 800x480 | mask");
  std::swap(tiff.directories[0], tiff.directories[1]);
  CHECK(found() == "1600x960 800x480 | mask");
}

TEST_CASE_FIXTURE(Fixture, "strips of another image that are larger than the slide's tiles aren't the slide") {
  tiff.directories = {view(400, 240), strips(1280, 430), strips(1024, 768)};
  tiff.directories[0].set_text(270, "Aperio Image Library v1\r\n400x240 (64x64)|MPP = 0.25");
  tiff.directories[1].set_text(270, "Aperio Image Library v1\r\nmacro 1280x430");
  CHECK(found() == "400x240 | macro image 2");
  tiff.directories[0].remove(270);
  tiff.directories.pop_back();
  CHECK(found() == "400x240 | macro");
}

TEST_CASE_FIXTURE(Fixture, "tiles may differ between levels") {
  tiff.directories = {view(1600, 960, true, 64), view(800, 480, true, 128), view(400, 240, true, 32)};
  CHECK(found() == "1600x960 800x480 400x240 |");
  const auto slide = open();
  for (std::size_t level = 0; level < 3; ++level) {
    const std::vector<std::uint8_t> pixels = read_level(*slide, level);
    const std::int64_t width = slide->info().levels[level].width;
    for (std::size_t i = 0; i < pixels.size(); i += 997) {
      const auto at = static_cast<std::int64_t>(i);
      REQUIRE(pixels[i] ==
              slide_at(at % width, at / width, static_cast<double>(slide_width) / static_cast<double>(width)));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "of two pyramids in one file the larger is read, and a line names the other") {
  tiff.directories = {label(1200, 960), label(600, 480), label(300, 240),
                      view(1600, 960),  view(800, 480),  view(400, 240)};
  CHECK(found() == "1600x960 800x480 400x240 | image 0 image 1 image 2");
  const std::string unread = "the image of 1200 x 960 pixels is no level of the slide: it isn't read";
  CHECK(warnings() == Lines{unread + ", nor 2 smaller"});
  for (std::uint32_t i = 0; i < 20; ++i) tiff.directories.push_back(label(1100 + i, 960));
  CHECK(warnings() == Lines{unread + ", nor 20 more so large, nor 2 smaller"});
  // Of one size they may be channels: one has to be chosen.
  tiff.directories = {label(1600, 960), label(800, 480), view(1600, 960), view(800, 480)};
  CHECK(error().ends_with("has 2 channels; set input.channel to choose one, 0 to 1"));
}

TEST_CASE_FIXTURE(Fixture, "beside SubIFDs no image of the main chain is a level") {
  tiff.directories = {view(1600, 960), view(200, 120), label(400, 240)};
  tiff.directories[0].subs = {view(800, 480)};
  CHECK(found() == "1600x960 800x480 | image 1 image 2");
  const std::string told = " pixels has the size of a level, but the slide's levels are SubIFDs: it is no level";
  CHECK(warnings() == Lines{"the image of 400 x 240" + told, "the image of 200 x 120" + told});
  // SubIFDs that are no levels leave them.
  tiff.directories[0].subs = {view(333, 480)};
  CHECK(found().starts_with("1600x960 200x120 |"));
  // SubIFDs of an image that isn't the slide are none of it.
  tiff.directories = {label(210, 120), view(1600, 960)};
  tiff.directories[0].subs = {view(800, 480)};
  CHECK(found() == "1600x960 | image 0");
}

TEST_CASE_FIXTURE(Fixture, "a SubIFD at byte 0 is none") {
  tiff.directories = {view(1600, 960)};
  tiff.directories[0].set(330, long_, {0});
  CHECK(found() == "1600x960 |");
  CHECK(warnings() == Lines{});
  // Nor is it one of several, and what is in the main chain are levels then.
  tiff.directories = {view(1600, 960), view(800, 480)};
  tiff.directories[0].set(330, long_, {0, 0});
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings() == Lines{});
  // Another place outside the file is damage.
  tiff.directories[0].set(330, long_, {0, 1U << 30});
  CHECK(error().find("lies outside the file") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a SubIFD leads to others, each of which counts once") {
  tiff.directories = {view(1600, 960)};
  TestDirectory& base = tiff.directories[0];
  base.subs = {view(800, 480), view(400, 240), view(333, 480), view(200, 120)};
  base.chained = true;
  const std::string all = "1600x960 800x480 400x240 200x120 |";
  const std::string other = "the image of 333 x 480 pixels is a SubIFD and no level of the slide: it isn't read";
  for (const bool big : {false, true}) {
    tiff.big = big;
    tiff.big_endian = big;
    CHECK(found() == all);
    CHECK(warnings() == Lines{other});
  }
  // It ends where it comes to one of its own.
  for (const int to : {0, 2, 3}) {
    base.chain_to = to;
    CHECK(found() == all);
    CHECK(warnings() == Lines{other});
  }
  base.chain_to = -1;
  base.chain_end = 1U << 30;
  CHECK(found() == all);
  CHECK(warnings() == Lines{"a SubIFD leads to what is no directory: it is passed over", other});
}

TEST_CASE_FIXTURE(Fixture, "SubIFDs that are no levels get a line") {
  tiff.directories = {view(1600, 960)};
  TestDirectory& base = tiff.directories[0];
  const std::string line = " pixels is a SubIFD and no level of the slide: it isn't read";
  // By its shape, by its name, and beside another of its size.
  base.subs = {view(800, 480), view(100, 240)};
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings() == Lines{"the image of 100 x 240" + line});
  base.subs = {view(800, 480), label(400, 240).set_text(270, "label")};
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings() == Lines{"the image of 400 x 240" + line});
  base.subs = {view(800, 480), view(800, 480), strips(400, 240), view(100, 240)};
  CHECK(found() == "1600x960 800x480 |");
  const std::string in_strips = " pixels is a SubIFD in strips, and levels need tiles: it isn't read";
  CHECK(warnings() ==
        Lines{"the image of 800 x 480" + line + ", nor 1 more of them", "the image of 400 x 240" + in_strips});
  base.subs = {strips(800, 480), view(400, 240), strips(200, 120)};
  CHECK(found() == "1600x960 400x240 |");
  CHECK(warnings() == Lines{"the image of 800 x 480" + in_strips + ", nor 1 more of them"});
  // Strips of another shape aren't left out because they are strips.
  base.subs = {view(800, 480), strips(100, 240)};
  CHECK(warnings() == Lines{"the image of 100 x 240" + line});
  // What has no size has a line of its own.
  base.subs = {view(800, 480), view(100, 240)};
  base.subs[1].remove(256);
  CHECK(warnings() == Lines{"SubIFD 1: ImageWidth is missing: it is no level"});
}

TEST_CASE_FIXTURE(Fixture, "a level that stands among the SubIFDs and in the main chain is one level") {
  tiff.directories = {view(1600, 960), view(800, 480)};
  tiff.directories[0].subs = {view(800, 480)};
  const std::size_t tiles = tiff.directories[1].tiles.size();
  CHECK(warnings() ==
        Lines{"the image of 800 x 480 pixels has the size of a level, but the slide's levels are SubIFDs: "
              "it is no level"});
  // The main chain's directory gets the places of the other one's tiles, which are the file's first.
  std::vector<std::uint64_t> offsets(tiles);
  for (std::size_t i = 0; i < tiles; ++i) offsets[i] = 8 + i * 64 * 64;
  tiff.directories[1].set(324, long_, offsets).set(325, long_, std::vector<std::uint64_t>(tiles, 64 * 64));
  tiff.directories[1].tiles.clear();
  CHECK(found() == "1600x960 800x480 |");
  CHECK(warnings().empty());
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
  const auto path = folder.write("slide.tif", tiff.bytes());
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
    return Slide::open(folder.write("slide.tif", tiff.bytes()), {.channel = 0});
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
  CHECK(Slide::open(folder.write("slide.tif", tiff.bytes()), {.channel = 0})->info().warnings ==
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
    const auto path = folder.write("slide.tif", tiff.bytes());
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
    return folder.write("slide.tif", tiff.bytes());
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
    return Slide::open(folder.write("slide.tif", tiff.bytes()), {.channel = 0})->info().channels;
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
