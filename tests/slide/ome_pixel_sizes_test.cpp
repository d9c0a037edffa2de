// Pixel sizes and magnifications in OME-XML: the rules of docs/formats.md.

#include <doctest/doctest.h>

#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/pixel_size_fixture.hpp"

using namespace slidestream;
using namespace slidestream::test;

TEST_CASE_FIXTURE(PixelSizeFixture, "all units of length of OME's schema are known, however they are spelt") {
  for (const auto& value_and_unit : std::vector<std::pair<std::string, std::string>>{{"0.25", "\xC2\xB5m"},
                                                                                     {"0.25", "&#181;m"},
                                                                                     {"0.25", "&#xB5;m"},
                                                                                     {"0.25", "&#956;m"},
                                                                                     {"0.25", "\xCE\xBCm"},
                                                                                     {"0.25", "\xB5m"},
                                                                                     {"0.25", "um"},
                                                                                     {"0.25", "micron"},
                                                                                     {"0.25", ""},
                                                                                     {"0,25", ""},
                                                                                     {"+0.25", ""},
                                                                                     {" 2.5E-1 ", ""},
                                                                                     {"2.5E-7", "m"},
                                                                                     {"2.5E-6", "dm"},
                                                                                     {"2.5E-5", "cm"},
                                                                                     {"2.5E-4", "mm"},
                                                                                     {"250", "nm"},
                                                                                     {"250000", "pm"},
                                                                                     {"2.5E8", "fm"},
                                                                                     {"2.5E11", "am"},
                                                                                     {"2500", "&#197;"},
                                                                                     {"2.5E-10", "km"},
                                                                                     {"9.84251968503937e-06", "in"},
                                                                                     {"0.00984251968503937", "thou"},
                                                                                     {"0.000708661417322835", "pt"}}) {
    CAPTURE(value_and_unit.first);
    CAPTURE(value_and_unit.second);
    const SlideInfo info = ome(size(value_and_unit.first, value_and_unit.second));
    CHECK(info.mpp.value_or(0.0) == doctest::Approx(0.25));
    CHECK_FALSE(info.mpp_y.has_value());
    CHECK(info.warnings.empty());
  }
  for (const char* unit : {"pixel", "reference frame", "furlong"}) {
    const SlideInfo info = ome(size("0.25", unit));
    CHECK_FALSE(info.mpp.has_value());
    CHECK(info.warnings.size() == 2);
    const std::string shown = unit == std::string("furlong") ? "an unknown value" : "'" + std::string(unit) + "'";
    CHECK(info.warnings[0] == "PhysicalSizeXUnit is " + shown + ", no unit of length: PhysicalSizeX is passed over");
  }
}

TEST_CASE_FIXTURE(PixelSizeFixture, "OME-XML is read whatever its prefixes, quotes, comments and sections") {
  const std::string pixels = "SizeX='100' SizeY='60' PhysicalSizeX = '0.25'\n PhysicalSizeY\t=\t'0.25'";
  for (const std::string& text :
       {"<ome:OME xmlns:ome='x'><ome:Image ID='Image:0'><ome:Pixels " + pixels + "/></ome:Image></ome:OME>",
        "\xEF\xBB\xBF<?xml version='1.0'?><!-- <OME> PhysicalSizeX='9' --><OME xmlns='x'><Image><Pixels " + pixels +
            "/></Image></OME>",
        "<!DOCTYPE OME [<!ENTITY a 'b'>]><OME><Image><Description><![CDATA[<Pixels PhysicalSizeX='9'/>]]>"
        "</Description><Pixels " +
            pixels + "></Pixels></Image></OME>",
        "\n\n<OME\n>\n<Image\n>\n<Pixels\n" + pixels + "\n/>\n</Image\n></OME>"}) {
    CAPTURE(text);
    const SlideInfo info = described(text);
    CHECK(info.format == "ome-tiff");
    CHECK(info.mpp.value_or(0.0) == doctest::Approx(0.25));
    CHECK(info.warnings.empty());
  }
}

TEST_CASE_FIXTURE(PixelSizeFixture, "OME-XML that is damaged is passed over, and a line says where") {
  resolution(20000, 20000, 3);
  for (const char* text :
       {"<OME xmlns=\"x\"><Image><Pixels PhysicalSizeX=\"0.25\" PhysicalSizeY=\"0.25\"></Image></OME>",
        "<OME><Image><Pixels PhysicalSizeX=\"0.25", "<OME><Image", "<OME xmlns=\"x"}) {
    CAPTURE(text);
    const SlideInfo info = described(text);
    CHECK(info.format == "ome-tiff");
    CHECK(info.mpp.value() == doctest::Approx(0.5));
    REQUIRE(info.warnings.size() == 1);
    CHECK(info.warnings[0].starts_with("its OME-XML is damaged at byte "));
    CHECK(info.warnings[0].ends_with(": nothing of it is used"));
  }
  CHECK(described("<OME><BinaryOnly MetadataFile=\"a.companion.ome\" UUID=\"b\"/></OME>").warnings ==
        Lines{"its OME-XML lies in another file, which isn't read"});
}

TEST_CASE_FIXTURE(PixelSizeFixture,
                  "an attribute that stands twice in an element of OME-XML gets a line, and the first counts") {
  const auto check = [](const SlideInfo& info, const std::string& attribute) {
    CHECK(info.mpp.value_or(0.0) == doctest::Approx(0.25));
    CHECK(info.warnings == Lines{"an element of its OME-XML has " + attribute + " twice: the first counts"});
  };
  const std::string own = size("0.25", "µm");
  check(ome(own + " PhysicalSizeX=\"0.5\""), "PhysicalSizeX");
  check(ome(own + " Type=\"uint8\" Type=\"uint8\" PhysicalSizeX=\"0.5\""), "PhysicalSizeX");
  check(ome(own, "<Experimenter FirstName=\"a\" FirstName=\"b\"/>"), "FirstName");
  check(ome(own, "<Experimenter a1=\"a\" a1=\"b\"/>"), "an attribute of an unknown name");
  // With a prefix it is another one, and each element has its own.
  CHECK(ome(own + " x:PhysicalSizeX=\"0.5\"", "<A ID=\"a\"/><A ID=\"a\"/>").warnings == Lines{});
}

TEST_CASE_FIXTURE(PixelSizeFixture, "of several Pixels in the slide's Image the first counts, with a line") {
  const std::string further = "/></Image><Image Name=\"label\"><Pixels SizeX=\"9\" SizeY=\"9\"/><Pixels SizeX=\"9\"";
  const std::string begin = "<OME><Image Name=\"a\"><Pixels SizeX=\"100\" SizeY=\"60\" " + size("0.25", "µm");
  SlideInfo info = described(begin + "/><Pixels SizeX=\"100\" SizeY=\"60\" " + size("0.5", "µm") + "/></Image></OME>");
  CHECK(info.mpp.value_or(0.0) == doctest::Approx(0.25));
  CHECK(info.warnings == Lines{"the slide's Image in its OME-XML has 2 Pixels: the first counts"});
  CHECK(described(begin + further + "/></Image></OME>").warnings == Lines{});
}

TEST_CASE_FIXTURE(PixelSizeFixture, "the schema of 2003 has micrometres at the Image") {
  const std::string image = "<OME><Image Name=\"a\" PixelSizeX=\"0.5\" PixelSizeY=\"0.25\"><Pixels SizeX=\"100\"";
  const SlideInfo info = described(image + "/></Image></OME>");
  CHECK(info.mpp.value_or(0.0) == 0.5);
  CHECK(info.mpp_y.value_or(0.0) == 0.25);
  CHECK(info.warnings.empty());
  CHECK(described(image + " PhysicalSizeX=\"2\" PhysicalSizeY=\"2\"/></Image></OME>").mpp.value_or(0.0) == 2.0);
}

TEST_CASE_FIXTURE(PixelSizeFixture, "the slide's Image has its own size and objective") {
  const std::string objectives =
      "<Instrument ID=\"Instrument:0\"><Objective ID=\"Objective:0:0\" NominalMagnification=\"2.0\"/><Objective "
      "ID=\"Objective:0:1\" NominalMagnification=\"20.0\"/></Instrument><Instrument ID=\"Instrument:1\"><Objective "
      "ID=\"Objective:1:0\" NominalMagnification=\"40\"/></Instrument>";
  const std::string pixels = "PhysicalSizeX=\"0.5\" PhysicalSizeY=\"0.5\"";
  SlideInfo info = ome(pixels, objectives, "<ObjectiveSettings ID=\"Objective:0:1\"/>");
  CHECK(info.mpp.value() == 0.5);
  CHECK(info.magnification.value() == 20.0);
  CHECK(ome(pixels, objectives, "<InstrumentRef ID=\"Instrument:1\"/>").magnification.value() == 40.0);
  CHECK(ome(pixels, objectives, "<ObjectiveRef ID=\"Objective:0:0\"/>").magnification.value() == 2.0);

  info = ome(pixels, objectives, "<InstrumentRef ID=\"Instrument:0\"/>");
  CHECK_FALSE(info.magnification.has_value());
  CHECK(info.warnings == Lines{"its OME-XML lists 2 objectives and doesn't say which is the slide's"});
  info = ome(pixels, objectives, "<ObjectiveSettings ID=\"Objective:9\"/>");
  CHECK_FALSE(info.magnification.has_value());
  CHECK(info.warnings == Lines{"ObjectiveSettings names 'Objective:9', which its OME-XML doesn't have"});
  info = ome(pixels, "<Instrument><Objective NominalMagnification=\"20x\"/></Instrument>");
  CHECK(info.warnings == Lines{"NominalMagnification is '20x', no positive number: it is passed over"});
  CHECK(ome(pixels, "<Instrument><Objective><NominalMagnification>20</NominalMagnification></Objective></Instrument>")
            .magnification.value() == 20.0);

  // A label before it, with a size of its own.
  info = described(
      "<OME><Image Name=\"label\"><Pixels PhysicalSizeX=\"16\" PhysicalSizeY=\"16\"><TiffData IFD=\"1\"/></Pixels>"
      "</Image><Image Name=\"a\"><Pixels SizeX=\"100\" SizeY=\"60\" PhysicalSizeX=\"0.5\" PhysicalSizeY=\"0.5\">"
      "<TiffData IFD=\"0\"/></Pixels></Image></OME>");
  CHECK(info.mpp.value() == 0.5);
  CHECK(info.properties.at("name") == "a");
  CHECK(info.warnings.empty());
}
