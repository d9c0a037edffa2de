// Planes of one size in one TIFF file: channels, of which one is chosen.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/tiff_fixture.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// A plane whose samples are all `value`, with SubIFDs of the same.
TestDirectory plane(std::uint32_t width, std::uint32_t height, std::uint8_t value, bool with_subs) {
  TestDirectory directory = black_level(width, height);
  for (Bytes& tile : directory.tiles) std::ranges::fill(tile, std::byte{value});
  if (with_subs) directory.subs = {plane(width / 2, height / 2, value, false)};
  return directory;
}

const std::string four_channels =
    "<?xml version=\"1.0\"?><OME xmlns=\"x\"><Image><Pixels SizeX=\"200\" SizeC=\"4\" SizeZ=\"1\" SizeT=\"1\">"
    "<Channel ID=\"0\" Name=\"DAPI\" SamplesPerPixel=\"1\"/><Channel ID=\"1\" Name=\"FITC\"/>"
    "<Channel ID=\"2\" Name=\"Cy3 &amp; x\"/><Channel ID=\"3\" Name=\"Cy5\"/></Pixels></Image></OME>";

}  // namespace

TEST_CASE_FIXTURE(TiffFixture, "planes of several channels are refused by name, unless one is chosen") {
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
  for (int channel = 0; channel < 4; ++channel) {
    const auto slide = open({.channel = channel});
    CHECK(slide->info().channels == std::vector<std::string>{"DAPI", "FITC", "Cy3 & x", "Cy5"});
    CHECK(slide->info().format == "ome-tiff");
    CHECK(sizes(slide->info()) == "200x120 100x60 ");
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<std::uint8_t> pixels = read_level(*slide, i);
      CHECK(std::ranges::count(pixels, 10 * (channel + 1)) == std::ssize(pixels));
    }
  }
  CHECK(error({.channel = 4}).ends_with("input.channel is 4; it has 4 channels (DAPI, FITC, Cy3 & x, Cy5)"));
  CHECK(error({.channel_name = "channel"}).ends_with("set channel to choose one, 0 to 3"));
}

TEST_CASE_FIXTURE(TiffFixture, "channels of a QPTIFF have the names that their directories say") {
  const auto text = [](const std::string& name) {
    return "<?xml version=\"1.0\" encoding=\"utf-16\"?><PerkinElmer-QPI-ImageDescription><ImageType>FullResolution"
           "</ImageType>" +
           name + "<ScanProfile><Name>a profile</Name></ScanProfile></PerkinElmer-QPI-ImageDescription>";
  };
  tiff.directories = {black_level(100, 60), black_level(100, 60)};
  tiff.directories[0].set_text(270, text("<Name>DAPI</Name>"));
  tiff.directories[1].set_text(270, text("<Name> FITC</Name>"));
  CHECK(error().ends_with("has 2 channels (DAPI, FITC); set input.channel to choose one, 0 to 1"));
  // All or none.
  tiff.directories[1].set_text(270, text(""));
  CHECK(error().ends_with("has 2 channels; set input.channel to choose one, 0 to 1"));
}

TEST_CASE_FIXTURE(TiffFixture, "planes without names, in depth, and in other files count as channels") {
  // Pages of one size, tiled or not, say nothing of what they are.
  tiff.directories = {black_level(100, 60), black_level(100, 60)};
  CHECK(error().ends_with("has 2 channels; set input.channel to choose one, 0 to 1"));
  tiff.directories = {black_strip(100, 60), black_strip(100, 60), black_strip(100, 60)};
  CHECK(error().ends_with("has 3 channels; set input.channel to choose one, 0 to 2"));
  // Those that say that they are reduced images or masks are no planes.
  tiff.directories[1].set_short(254, 1);
  tiff.directories[2].set_short(254, 4);
  CHECK(error().empty());
  const auto declare = [&](const std::string& sizes) {
    tiff.directories = {black_level(100, 60)};
    tiff.directories[0].set_text(270, "<OME xmlns=\"x\"><Pixels SizeX=\"100\" " + sizes + "/></OME>");
  };
  declare("SizeC=\"1\" SizeZ=\"5\" SizeT=\"2\"");
  const std::string ten =
      "has 10 channels (0: z 0, t 0; 1: z 1, t 0; 2: z 2, t 0; 3: z 3, t 0; 4: z 4, t 0; 5: z 0, t 1; 6: z 1, t 1; "
      "7: z 2, t 1; ...), of which the file holds the first";
  CHECK(error().ends_with(ten + "; set input.channel to choose one, 0"));
  CHECK(error({.channel = 0}).empty());
  CHECK(error({.channel = 1}).ends_with("input.channel is 1; it " + ten));
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
  CHECK(error({.channel = 0}).ends_with("input.channel is 0, but its pixels are RGB; leave it out"));
  tiff.directories = {black_level(100, 60)};
  CHECK(error({.channel = 0}).empty());
  CHECK(error({.channel = 1}).ends_with("input.channel is 1; it has one channel, 0"));
}
