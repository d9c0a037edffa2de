#include "slide/number_text.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace slidestream;

TEST_CASE("units of length are those of OME's schema and some other spellings, in these letters") {
  using Unit = std::pair<const char*, double>;
  for (const Unit& unit : {Unit{"Ym", 1e30},
                           {"Zm", 1e27},
                           {"Em", 1e24},
                           {"Pm", 1e21},
                           {"Tm", 1e18},
                           {"Gm", 1e15},
                           {"Mm", 1e12},
                           {"km", 1e9},
                           {"hm", 1e8},
                           {"dam", 1e7},
                           {"m", 1e6},
                           {"dm", 1e5},
                           {"cm", 1e4},
                           {"mm", 1e3},
                           {"\xC2\xB5m", 1.0},
                           {"nm", 1e-3},
                           {"pm", 1e-6},
                           {"fm", 1e-9},
                           {"am", 1e-12},
                           {"zm", 1e-15},
                           {"ym", 1e-18},
                           {"\xC3\x85", 1e-4},
                           {"thou", 25.4},
                           {"li", 2116.6666667},
                           {"in", 25400.0},
                           {"ft", 304800.0},
                           {"yd", 914400.0},
                           {"mi", 1609344000.0},
                           {"ua", 1.495978707e17},
                           {"ly", 9.4607304725808e21},
                           {"pc", 3.0856775814e22},
                           {"pt", 352.7777778},
                           {"", 1.0},
                           {"\xCE\xBCm", 1.0},
                           {"\xB5m", 1.0},
                           {"um", 1.0},
                           {"micron", 1.0},
                           {"microns", 1.0},
                           {"micrometer", 1.0},
                           {"micrometre", 1.0},
                           {"\\u00B5m", 1.0},
                           {"\xE2\x84\xAB", 1e-4},
                           {"\xC5", 1e-4},
                           {"inch", 25400.0},
                           {"nanometer", 1e-3},
                           {" um\n", 1.0}}) {
    CAPTURE(unit.first);
    CHECK(micrometres_of(unit.first).value_or(0.0) / unit.second == doctest::Approx(1.0));
  }
  for (const char* unit : {"MM", "UM", "Micron", "inches", "pixel", "u", "\xC2\xB5", "mm mm"}) {
    CAPTURE(unit);
    CHECK_FALSE(micrometres_of(unit).has_value());
  }
}
