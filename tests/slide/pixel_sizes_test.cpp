// Pixel sizes and magnifications as other programs write them: the rules of docs/formats.md, a row each.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/positive_number.hpp"
#include "slide/number_text.hpp"
#include "slide/pixel_size_fixture.hpp"

using namespace slidestream;
using namespace slidestream::test;

TEST_CASE_FIXTURE(PixelSizeFixture, "Aperio descriptions give properties, mpp and magnification") {
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

TEST_CASE_FIXTURE(PixelSizeFixture, "nonsense in descriptions is no number") {
  for (const std::string text :
       {"nan", "-0.5", "0", "inf", "1e999", "0.5um", "0.5 mm", "1,000.5", "0,2,5", "01.02.1950", "0.5.1", "++1", ""}) {
    tiff.directories[0].set_text(270, "Aperio\n|MPP = " + text + "|AppMag = " + text);
    const SlideInfo info = open()->info();
    CHECK_FALSE(info.mpp.has_value());
    CHECK_FALSE(info.magnification.has_value());
    // What has no number's form isn't repeated.
    const std::string shown =
        std::ranges::count(text, ',') + std::ranges::count(text, '.') > 1 ? std::string() : "'" + text + "', ";
    const auto said = [&](const char* key) {
      return std::string(key) + " is " + shown + "no positive number: it is passed over";
    };
    CHECK(info.warnings ==
          (text.empty() ? std::vector<std::string>() : std::vector<std::string>{said("AppMag"), said("MPP")}));
  }
}

TEST_CASE_FIXTURE(PixelSizeFixture, "OME-TIFF gives its pixel size, plain TIFF its resolution") {
  tiff.directories[0].set_text(270,
                               "<?xml version=\"1.0\"?><OME xmlns=\"x\"><Objective NominalMagnification=\"20\"/>"
                               "<Pixels PhysicalSizeX=\"250\" PhysicalSizeXUnit=\"nm\" PhysicalSizeY=\"0.25\" "
                               "SizeX=\"100\"/></OME>");
  CHECK(open()->info().warnings.empty());
  CHECK(open()->info().format == "ome-tiff");
  CHECK(open()->info().mpp.value() == doctest::Approx(0.25));
  CHECK(open()->info().magnification.value() == doctest::Approx(20.0));

  tiff.directories[0].remove(270).set(282, rational, {20000}).set_short(296, 3);
  CHECK(open()->info().format == "tiff");
  CHECK(open()->info().mpp.value() == doctest::Approx(0.5));
  tiff.directories[0].set(282, rational, {300}).set_short(296, 2);  // a printer's
  CHECK_FALSE(open()->info().mpp.has_value());
}

TEST_CASE_FIXTURE(PixelSizeFixture, "Pixels that aren't square have two sizes, of 1 % and less one") {
  tiff.directories.push_back(black_level(50, 31));
  const auto ome = [&](const std::string& sizes) {
    tiff.directories[0].set_text(270,
                                 "<?xml version=\"1.0\"?><OME xmlns=\"x\"><Pixels " + sizes + " SizeX=\"1\"/></OME>");
    return open()->info();
  };
  const SlideInfo info = ome("PhysicalSizeX=\"0.25\" PhysicalSizeY=\"400\" PhysicalSizeYUnit=\"nm\"");
  CHECK(info.mpp.value() == doctest::Approx(0.25));
  CHECK(info.mpp_y.value() == doctest::Approx(0.4));
  CHECK(info.mean_mpp().value() == doctest::Approx(std::sqrt(0.1)));
  CHECK(info.downsample_x(1) == 2.0);
  CHECK(info.downsample_y(1) == doctest::Approx(60.0 / 31.0));
  const auto refusal = [](const SlideInfo& of) -> std::string {
    try {
      of.require_square_pixels("model.mpp", "set input.mpp");
    } catch (const SlideError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(
      refusal(info).ends_with(": its pixels aren't square, 0.25 x 0.4 micrometres, and model.mpp needs one size for "
                              "both directions; set input.mpp"));
  for (const char* near : {"0.25", "0.2524", "0.2476"}) {
    const SlideInfo square = ome("PhysicalSizeX=\"0.25\" PhysicalSizeY=\"" + std::string(near) + "\"");
    CHECK(square.mpp.value() == doctest::Approx(0.25));
    CHECK_FALSE(square.mpp_y.has_value());
    CHECK(square.mean_mpp() == square.mpp);
    CHECK(refusal(square).empty());
    // What the slide says is kept.
    CHECK(square.said_mpp_y.has_value() == (near != std::string("0.25")));
    CHECK(square.said_mpp_y.value_or(0.25) == doctest::Approx(std::stod(near)));
  }
  CHECK(info.said_mpp_y == info.mpp_y);
  const auto given = Slide::open(folder.write("slide.tif", tiff.bytes()), {.mpp = 0.5});
  CHECK_FALSE(given->info().said_mpp_y.has_value());
  CHECK_FALSE(ome("PhysicalSizeX=\"0.25\" PhysicalSizeY=\"1\" PhysicalSizeYUnit=\"pixel\"").mpp_y.has_value());

  tiff.directories[0].remove(270).set(282, rational, {20000}).set(283, rational, {10000}).set_short(296, 3);
  CHECK(open()->info().mpp.value() == doctest::Approx(0.5));
  CHECK(open()->info().mpp_y.value() == doctest::Approx(1.0));
  tiff.directories[0].set(283, rational, {20000});
  CHECK_FALSE(open()->info().mpp_y.has_value());
}

TEST_CASE_FIXTURE(PixelSizeFixture, "one size alone, absurd sizes, and sizes that differ") {
  const auto only = [](const char* from, const char* along) {
    return std::string(from) + " says the size of pixels only " + along +
           ", 0.25 micrometres: they are taken for square";
  };
  for (const char* axis : {"X", "Y"}) {
    const SlideInfo info = ome("PhysicalSize" + std::string(axis) + "=\"0.25\"");
    CHECK(info.mpp.value() == 0.25);
    CHECK_FALSE(info.mpp_y.has_value());
    CHECK(info.warnings == Lines{only("OME-XML", *axis == 'X' ? "across" : "down")});
  }
  const SlideInfo apart = ome("PhysicalSizeX=\"0.25\" PhysicalSizeY=\"0.5\"");
  CHECK(apart.mpp.value() == 0.25);
  CHECK(apart.mpp_y.value() == 0.5);
  CHECK(apart.warnings.empty());

  const SlideInfo metres = ome(size("0.25", "m"));
  CHECK_FALSE(metres.mpp.has_value());
  CHECK(metres.warnings.front() ==
        "PhysicalSizeX is 250000 micrometres, no size of a slide's pixel: it is passed over");
  for (const char* value : {"0", "-1", "nan", "inf", "1e-9", "1e9", "1.2.3", "a"}) {
    const SlideInfo info = ome(size(value, ""));
    CHECK_FALSE(info.mpp.has_value());
    CHECK(info.warnings.size() == 2);
  }
  // A millimetre is what writers fill in that know no size.
  CHECK_FALSE(ome(size("1", "mm")).mpp.has_value());
  CHECK(ome(size("1", "mm")).warnings.front() ==
        "PhysicalSizeX is 1000 micrometres, no size of a slide's pixel: it is passed over");
  CHECK(ome(size("0.999", "mm")).mpp.value_or(0.0) == doctest::Approx(999.0));
  CHECK(described("Aperio\n|MPP = 1000").warnings ==
        Lines{"MPP is 1000 micrometres, no size of a slide's pixel: it is passed over"});
  CHECK(described("Aperio\n|MPP = 4000").warnings ==
        Lines{"MPP is 4000 micrometres, no size of a slide's pixel: it is passed over"});
}

TEST_CASE_FIXTURE(PixelSizeFixture,
                  "resolution tags count where text says nothing, in OME-TIFF and in Aperio's files, too") {
  for (const char* text :
       {"", "<OME><Image><Pixels SizeX=\"100\" SizeY=\"60\"/></Image></OME>", "Aperio\n|AppMag = 20"}) {
    CAPTURE(text);
    resolution(20000, 20000, 3);
    CHECK(described(text).mpp.value() == doctest::Approx(0.5));
    resolution(50800, 50800, 2);
    CHECK(described(text).mpp.value() == doctest::Approx(0.5));
    tiff.directories[0].remove(296);  // inch
    CHECK(described(text).mpp.value() == doctest::Approx(0.5));
    resolution(20000, 10000, 3);
    CHECK(described(text).mpp_y.value() == doctest::Approx(1.0));
    // Without a unit, and of a printer.
    for (const auto& [pixels, unit] :
         std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 1}, {1200, 1}, {300, 2}, {72, 2}, {118, 3}}) {
      resolution(pixels, pixels, unit);
      CHECK_FALSE(described(text).mpp.has_value());
      CHECK(described(text).warnings.empty());
    }
  }
  // A slide's, if it had a unit.
  resolution(20000, 20000, 1);
  CHECK(described("Some scanner|MPP = 0.25").warnings == Lines{});
  CHECK(described("ImageJ=1.53t\nunit=cm\n").warnings == Lines{});
  CHECK_FALSE(described("").mpp.has_value());
  CHECK(described("").warnings ==
        Lines{"ResolutionUnit 1 is no unit of length: XResolution and YResolution say no size of pixels"});
  // What can't be what it says.
  const auto lines = [this] {
    const SlideInfo info = described("");
    CHECK_FALSE(info.mpp.has_value());
    return info.warnings;
  };
  resolution(20000, 20000, 9);
  CHECK(lines() == Lines{"ResolutionUnit 9 isn't known: the resolution is passed over"});
  tiff.directories[0].set(296, ascii, {3});
  CHECK(lines() == Lines{"ResolutionUnit has no value that can be read: the resolution is passed over"});
  tiff.directories[0].set(296, short_, {3, 3});
  CHECK(lines() == Lines{"ResolutionUnit has 2 values, expected 1: the resolution is passed over"});
  resolution(20'000'000, 20'000'000, 3);
  CHECK(lines() == Lines{"XResolution says 0.0005 micrometres, no size of a slide's pixel: it is passed over",
                         "YResolution says 0.0005 micrometres, no size of a slide's pixel: it is passed over"});
  tiff.directories[0].remove(282).remove(283);
  tiff.directories[0].set(270, rational, {3});
  CHECK(open()->info().warnings == Lines{"ImageDescription can't be read as text: it is passed over"});
  // Other types of single bytes are text.
  const std::string text = "Some scanner|MPP = 0.25";
  for (const int type : {1, 6, 7}) {
    tiff.directories[0].set(270, static_cast<std::uint16_t>(type), {text.begin(), text.end()});
    CHECK(open()->info().mpp.value_or(0.0) == 0.25);
    CHECK(open()->info().warnings.empty());
  }
  // ImageJ has its unit in the text.
  resolution(4, 4, 1);
  CHECK(described("ImageJ=1.53t\nunit=micron\n").mpp.value() == doctest::Approx(0.25));
  CHECK(described("ImageJ=1.53t\nunit=\\u00B5m\n").mpp.value() == doctest::Approx(0.25));
  CHECK_FALSE(described("ImageJ=1.53t\nunit=pixel\n").mpp.has_value());
}

TEST_CASE_FIXTURE(PixelSizeFixture, "the unit that ImageJ names counts under every ResolutionUnit") {
  const auto check = [this](const std::string& unit, double mpp, const Lines& lines) {
    CAPTURE(unit);
    const SlideInfo info = described("ImageJ=1.53t\nimages=1\nunit=" + unit + "\nloop=false\n");
    CHECK(info.mpp.value_or(0.0) == doctest::Approx(mpp));
    CHECK(info.warnings == lines);
  };
  const auto line = [](const std::string& size, const std::string& by_tag) {
    return Lines{"ImageJ's unit gives " + size + " micrometres per pixel, and ResolutionUnit " + by_tag +
                 ": ImageJ's counts"};
  };
  resolution(4, 4, 3);
  for (const char* unit : {"um", "micron", "\\u00B5m", "\xC2\xB5m"}) check(unit, 0.25, line("0.25", "2500"));
  resolution(4, 4, 2);
  check("um", 0.25, line("0.25", "6350"));
  // Where the tag isn't there, it contradicts nothing.
  tiff.directories[0].remove(296);
  check("um", 0.25, {});
  resolution(2000, 2000, 3);
  check("mm", 0.5, line("0.5", "5"));
  // Both say the same, and what is no unit of length says nothing.
  resolution(20000, 20000, 3);
  for (const char* unit : {"cm", "pixel", "", "furlong"}) check(unit, 0.5, {});
  resolution(50800, 50800, 2);
  for (const char* unit : {"inch", "pixel"}) check(unit, 0.5, {});
  // A resolution that was written in the tag's unit.
  resolution(20000, 20000, 3);
  check("um", 0.5, {"ImageJ's unit gives 5e-05 micrometres per pixel, and ResolutionUnit 0.5: ResolutionUnit counts"});
  // A printer's resolution is none in either unit.
  resolution(2, 2, 2);
  check("cm", 0.0, {});
  // Others' descriptions have no such unit.
  resolution(20000, 20000, 3);
  CHECK(described("Scanner 1\nunit=mm\n").mpp.value_or(0.0) == doctest::Approx(0.5));
}

TEST_CASE_FIXTURE(PixelSizeFixture, "a list's pixel size of another scale than the slide's counts, with a line") {
  resolution(20000, 20000, 3);
  const auto path = folder.write("slide.tif", tiff.bytes());
  for (const double size : {0.06, 0.25, 4.9}) {
    CHECK(Slide::open(path, {.mpp = size, .mpp_is_listed = true})->info().warnings == Lines{});
  }
  const auto listed = Slide::open(path, {.mpp = 500.0, .mpp_is_listed = true});
  CHECK(listed->info().mpp == 500.0);
  CHECK(listed->info().warnings ==
        Lines{"the list gives its pixels 500 micrometres, and the slide says 0.5: the list counts"});
  CHECK(Slide::open(path, {.mpp = 0.04, .mpp_is_listed = true})->info().warnings.size() == 1);
  CHECK(Slide::open(path, {.mpp = 500.0})->info().warnings == Lines{});
}

TEST_CASE_FIXTURE(PixelSizeFixture, "ImageJ's unit of the height is its own, and the first of several units counts") {
  resolution(40000, 4000, 1);
  const SlideInfo square = described("ImageJ=1.53t\nunit=cm\nyunit=mm\nzunit=nm\n");
  CHECK(square.mpp.value_or(0.0) == doctest::Approx(0.25));
  CHECK_FALSE(square.mpp_y.has_value());
  CHECK(square.warnings == Lines{});
  resolution(4, 101600, 1);
  CHECK_FALSE(described("ImageJ=1.53t\nunit=um\nyunit=inch\n").mpp_y.has_value());
  // One that is no length says nothing of the height.
  resolution(4, 2, 1);
  const SlideInfo across = described("ImageJ=1.53t\nunit=um\nyunit=pixel\n");
  CHECK(across.mpp.value_or(0.0) == doctest::Approx(0.25));
  CHECK_FALSE(across.mpp_y.has_value());
  CHECK(across.warnings == Lines{"the resolution says the size of pixels only across, 0.25 micrometres: they are taken "
                                 "for square"});
  resolution(4, 4, 1);
  CHECK(described("ImageJ=1.53t\nunit=um\nunit=um\n").warnings == Lines{});
  const SlideInfo twice = described("ImageJ=1.53t\nunit=um\nloop=false\nunit=nm\n");
  CHECK(twice.mpp.value_or(0.0) == doctest::Approx(0.25));
  CHECK(twice.warnings == Lines{"ImageJ's description says several values of unit: the first counts"});
}

TEST_CASE_FIXTURE(PixelSizeFixture, "sizes of which one is a hundred times the other aren't one pixel's") {
  const auto line = [](const std::string& place, const std::string& sizes) {
    return place + " says " + sizes +
           " micrometres per pixel, as if a unit were missing: both are passed over; input.mpp sets the size";
  };
  const std::string only_across = "PhysicalSizeX=\"500\" PhysicalSizeXUnit=\"nm\" PhysicalSizeY=\"500\"";
  const SlideInfo across = ome(only_across);
  CHECK_FALSE(across.mpp.has_value());
  CHECK_FALSE(across.mpp_y.has_value());
  CHECK_FALSE(across.said_mpp_y.has_value());
  CHECK(across.warnings == Lines{line("OME-XML", "0.5 x 500")});
  const SlideInfo down = ome("PhysicalSizeX=\"500\" PhysicalSizeY=\"500\" PhysicalSizeYUnit=\"nm\"");
  CHECK_FALSE(down.mpp.has_value());
  CHECK(down.warnings == Lines{line("OME-XML", "500 x 0.5")});
  CHECK_FALSE(ome("PhysicalSizeX=\"0.25\" PhysicalSizeY=\"25\"").mpp.has_value());
  // Long pixels are possible, and what is equal in one unit.
  const SlideInfo long_ones = ome("PhysicalSizeX=\"0.25\" PhysicalSizeY=\"24\"");
  CHECK(long_ones.mpp.value() == 0.25);
  CHECK(long_ones.mpp_y.value() == 24.0);
  CHECK(long_ones.warnings.empty());
  CHECK(ome("PhysicalSizeX=\"0.5\" PhysicalSizeXUnit=\"um\" PhysicalSizeY=\"0.5\"").mpp.value() == 0.5);
  // The next place counts, and what is given.
  const auto path = [this] { return folder.write("slide.tif", tiff.bytes()); };
  ome(only_across);
  CHECK(Slide::open(path(), {.mpp = 0.5})->info().mpp.value() == 0.5);
  resolution(40000, 40000, 3);
  const SlideInfo by_tags = ome(only_across);
  CHECK(by_tags.mpp.value() == doctest::Approx(0.25));
  CHECK(by_tags.warnings == Lines{line("OME-XML", "0.5 x 500")});
  // Tags have one unit for both, and may be wrong all the same.
  resolution(200000, 1000, 3);
  CHECK_FALSE(described("").mpp.has_value());
  CHECK(described("").warnings == Lines{line("the resolution", "0.05 x 10")});
  // Also if one of them alone could be a pixel's.
  resolution(40000, 400, 3);
  CHECK_FALSE(described("").mpp.has_value());
  CHECK(described("").warnings == Lines{line("the resolution", "0.25 x 25")});
  tiff.directories[0].remove(282).remove(283);
  const SlideInfo millimetres = ome("PhysicalSizeX=\"0.0005\" PhysicalSizeXUnit=\"mm\" PhysicalSizeY=\"0.0005\"");
  CHECK_FALSE(millimetres.mpp.has_value());
  CHECK(millimetres.warnings == Lines{line("OME-XML", "0.5 x 0.0005")});
  CHECK(ome("PhysicalSizeX=\"5000\" PhysicalSizeY=\"0.5\"").warnings == Lines{line("OME-XML", "5000 x 0.5")});
  // Of a printer, in both directions.
  resolution(720, 7, 2);
  CHECK(described("").warnings.empty());
}

TEST_CASE_FIXTURE(PixelSizeFixture, "where text and resolution differ, the text counts, and a line says so") {
  resolution(20000, 20000, 3);
  SlideInfo info = ome(size("0.25", ""));
  CHECK(info.mpp.value() == 0.25);
  CHECK(info.warnings == Lines{"OME-XML says 0.25 micrometres per pixel, and the resolution 0.5: OME-XML counts"});
  info = described("Aperio\n|MPP = 0.25");
  CHECK(info.mpp.value() == 0.25);
  CHECK(info.warnings ==
        Lines{"the description says 0.25 micrometres per pixel, and the resolution 0.5: the description counts"});
  CHECK(ome(size("0.505", "")).warnings.empty());
  // What can't be used doesn't go before what can.
  info = ome(size("0.25", "pixel"));
  CHECK(info.mpp.value() == doctest::Approx(0.5));
}

TEST_CASE_FIXTURE(PixelSizeFixture, "lists of keys are read wherever they stand, with decimal commas") {
  for (const char* text :
       {"Motic V1.0.0 \n1600x1200 [0,0 1600x1200] [256x256] JPEG/RGB Q = 75|AppMag = 40|MPP = 0.257290",
        "Aperio Image Library v12\r\n100x60 (64x64)|AppMag = 40|MPP = 0,257290|Date = 1,2",
        "AppMag = 40 MPP = 0.257290", "Scanner;AppMag=40;MPP=0.257290;", "MPP = 0.257290\r\nAppMag = 40\r\n",
        "mpp=0.25729;appmag=40", "Mpp = 0.25729\r\nAPPMAG = 40", "xmpp=9;mpp_x=8;mpp=0.25729 appMag=40",
        "XMPP = 9|COMPPMPP = 8|MPP = 0.257290|AppMag = 40"}) {
    CAPTURE(text);
    const SlideInfo info = described(text);
    CHECK(info.mpp.value_or(0.0) == doctest::Approx(0.25729));
    CHECK(info.magnification.value_or(0.0) == 40.0);
    CHECK(info.warnings.empty());
  }
  CHECK(described("Motic|MPP = 0.25").format == "tiff");
  CHECK(described("Motic|MPP = 0.25|User = x").properties.count("User") == 0);
  const SlideInfo twice = described("Aperio\n|MPP = 0.25|MPP = 0.5");
  CHECK(twice.mpp.value() == 0.25);
  CHECK(twice.warnings == Lines{"MPP stands twice in the description, and differs: the first counts"});
  CHECK(described("Aperio\n|MPP = 0.25|MPP = 0.25").warnings.empty());
  CHECK(described("Aperio\n|MPP = 0.25|mpp = 0.5").warnings == twice.warnings);
  CHECK_FALSE(described("MPP 0.25;umpp=0.25").mpp.has_value());
}

TEST_CASE("one reader for all numbers") {
  CHECK(positive_number("0,2500").value() == 0.25);
  CHECK(positive_number(" +4e1 ").value() == 40.0);
  for (const char* text :
       {"", " ", "1,2,3", "1.234,5", "1,234.5", "0", "-1", "+-1", "++1", "nan", "inf", "0x10", "1 2", "1m"}) {
    CHECK_FALSE(positive_number(text).has_value());
  }
  CHECK_FALSE(positive_number(std::string(65, '1')).has_value());
  CHECK(positive_number(std::string(64, '1')).has_value());
}

TEST_CASE_FIXTURE(PixelSizeFixture, "a pixel size that the magnification makes impossible gets a line") {
  const auto lines = [this](const std::string& text) { return described("Aperio x\r\n100x60|" + text).warnings; };
  CHECK(
      lines("AppMag = 40|MPP = 250") ==
      Lines{"its pixels of 250 micrometres don't fit its magnification of 40, at which they have about 0.25; input.mpp "
            "sets their size"});
  CHECK(lines("AppMag = 5|MPP = 0.25").size() == 1);
  // A doubler behind the lens.
  for (const char* text : {"AppMag = 40|MPP = 0.25", "AppMag = 20|MPP = 0.25", "AppMag = 20|MPP = 0.9", "MPP = 250"}) {
    CHECK_MESSAGE(lines(text).empty(), text);
  }
}
