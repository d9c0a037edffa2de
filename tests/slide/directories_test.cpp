#include <doctest/doctest.h>

#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

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
                      level(1000, 600),                   // not smaller
                      level(500, 301),                    // one of these sizes is there already
                      strips(30, 30)};
  CHECK(sizes(open()->info()) == "1000x600 500x301 250x150 ");
  CHECK(open()->info().levels[2].downsample == doctest::Approx(4.0));
  CHECK(open()->info().associated.size() == 5);
}

TEST_CASE_FIXTURE(Fixture, "level 0 is the first tiled directory even if it isn't the first or largest") {
  tiff.directories = {strips(2000, 1200), level(500, 300), level(1000, 600), level(250, 150)};
  CHECK(sizes(open()->info()) == "500x300 250x150 ");
}

TEST_CASE_FIXTURE(Fixture, "small levels may be off by 2 pixels, and thin slides by any share") {
  tiff.directories = {level(9000, 100), level(141, 3), level(70, 1), level(70, 20)};
  CHECK(sizes(open()->info()) == "9000x100 141x3 70x1 ");
}

TEST_CASE_FIXTURE(Fixture, "without tiled directories the first is the only level") {
  tiff.directories = {strips(100, 60), strips(200, 120), strips(50, 30)};
  CHECK(sizes(open()->info()) == "100x60 ");
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
      CHECK(open()->info().big_tiff == big);
      CHECK(read_level(*open(), 1).size() == 500 * 300);
    }
  }
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

TEST_CASE_FIXTURE(Fixture, "directory loops fail") {
  tiff.directories = {level(100, 60), level(50, 30)};
  for (const int to : {0, 1}) {
    tiff.loop_to = to;
    CHECK(error().find("directories form a loop") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture, "a SubIFD that is its own parent adds no level") {
  tiff.directories = {level(100, 60)};
  tiff.directories[0].set(330, long_, {0});
  CHECK(error().find("lies outside the file") != std::string::npos);
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

TEST_CASE_FIXTURE(Fixture, "Aperio descriptions give properties, mpp and magnification") {
  tiff.directories = {level(100, 60)};
  tiff.directories[0].set_text(270,
                               "Aperio Image Library v11\r\n100x60 (64x64) J2K/KDU Q=70|AppMag = 40|MPP = 0.2523|"
                               "Empty = |no pair|Title = a = b ");
  const SlideInfo info = open()->info();
  CHECK(info.format == "aperio");
  CHECK(info.mpp.value() == doctest::Approx(0.2523));
  CHECK(info.magnification.value() == doctest::Approx(40.0));
  CHECK(info.properties.at("description") == "Aperio Image Library v11");
  CHECK(info.properties.at("Empty").empty());
  CHECK(info.properties.at("Title") == "a = b");
  CHECK(info.properties.count("no pair") == 0);
}

TEST_CASE_FIXTURE(Fixture, "nonsense in descriptions is no number") {
  tiff.directories = {level(100, 60)};
  for (const char* text : {"nan", "-0.5", "0", "inf", "1e999", "0.5um", ""}) {
    tiff.directories[0].set_text(270, std::string("Aperio\n|MPP = ") + text + "|AppMag = " + text);
    CHECK_FALSE(open()->info().mpp.has_value());
    CHECK_FALSE(open()->info().magnification.has_value());
  }
}

TEST_CASE_FIXTURE(Fixture, "OME-TIFF gives its pixel size, plain TIFF its resolution") {
  tiff.directories = {level(100, 60)};
  tiff.directories[0].set_text(270,
                               "<?xml version=\"1.0\"?><OME xmlns=\"x\"><Objective NominalMagnification=\"20\"/>"
                               "<Pixels PhysicalSizeX=\"250\" PhysicalSizeXUnit=\"nm\" SizeX=\"100\"/></OME>");
  CHECK(open()->info().format == "ome-tiff");
  CHECK(open()->info().mpp.value() == doctest::Approx(0.25));
  CHECK(open()->info().magnification.value() == doctest::Approx(20.0));

  tiff.directories[0].remove(270).set(282, rational, {20000}).set_short(296, 3);
  CHECK(open()->info().format == "tiff");
  CHECK(open()->info().mpp.value() == doctest::Approx(0.5));
  tiff.directories[0].set(282, rational, {300}).set_short(296, 2);  // a printer's
  CHECK_FALSE(open()->info().mpp.has_value());
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

namespace {

Bytes profile(std::size_t bytes) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < 4; ++i) made[i] = static_cast<std::byte>(bytes >> (24 - 8 * i));
  const auto put = [&made](std::size_t at, const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i) made[at + i] = static_cast<std::byte>(text[i]);
  };
  put(16, "RGB ");
  put(36, "acsp");
  return made;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "an ICC profile is that of the level, or of the first") {
  constexpr std::uint16_t icc = 34675;
  tiff.directories = {level(400, 240), level(200, 120), level(100, 60)};
  CHECK(open()->icc_profile(0).bytes.empty());
  CHECK(open()->icc_profile(0).fault.empty());
  tiff.directories[0].set_bytes(icc, profile(300));
  tiff.directories[2].set_bytes(icc, profile(128));
  for (const bool big : {false, true}) {
    tiff.big = big;
    const auto slide = open();
    CHECK(slide->icc_profile(0).bytes == profile(300));
    CHECK(slide->icc_profile(0).space == "RGB");
    CHECK(slide->icc_profile(1).bytes == profile(300));
    CHECK(slide->icc_profile(2).bytes == profile(128));
    CHECK(slide->icc_profile(2).fault.empty());
  }
}

TEST_CASE_FIXTURE(Fixture, "an ICC profile that is damaged is none, and no fault of the slide") {
  constexpr std::uint16_t icc = 34675;
  tiff.directories = {level(100, 60)};
  const auto fault = [this] {
    const IccProfile found = open()->icc_profile(0);
    CHECK(found.bytes.empty());
    return found.fault;
  };
  tiff.directories[0].set_bytes(icc, Bytes(profile(127)));
  CHECK(fault() == "the ICC profile has 127 bytes, supported are 128 to 16777216");
  Bytes larger = profile(300);
  larger[2] = std::byte{2};
  tiff.directories[0].set_bytes(icc, larger);
  CHECK(fault() == "the ICC profile of 300 bytes is damaged");
  Bytes unsigned_ = profile(300);
  unsigned_[36] = std::byte{};
  tiff.directories[0].set_bytes(icc, unsigned_);
  CHECK(fault() == "the ICC profile of 300 bytes is damaged");
  tiff.directories[0].set(icc, short_, std::vector<std::uint64_t>(300));
  CHECK(fault() == "the ICC profile has type 3, supported are BYTE and UNDEFINED");

  // What the entry claims, and the file doesn't hold.
  tiff.directories[0].set_bytes(icc, profile(300));
  Bytes bytes = tiff.bytes();
  const std::size_t at = [&] {
    for (std::size_t i = 0; i + 12 <= bytes.size(); ++i) {
      if (bytes[i] == std::byte{0x73} && bytes[i + 1] == std::byte{0x87} && bytes[i + 2] == std::byte{7}) return i;
    }
    return bytes.size();
  }();
  REQUIRE(at < bytes.size());
  bytes[at + 6] = std::byte{1};
  const auto beyond = Slide::open(folder.write("slide.tif", bytes))->icc_profile(0);
  CHECK(beyond.bytes.empty());
  CHECK(beyond.fault.find("lies outside the file") != std::string::npos);
  bytes[at + 7] = std::byte{0x7F};
  CHECK(Slide::open(folder.write("slide.tif", bytes))->icc_profile(0).fault.find("supported are 128") !=
        std::string::npos);
}
