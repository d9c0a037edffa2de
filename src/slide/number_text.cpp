#include "slide/number_text.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string>

#include "config/positive_number.hpp"
#include "config/quoted_text.hpp"

namespace slidestream {
namespace {

constexpr double least_pixel_size = 0.001;

struct LengthUnit {
  std::string_view name;
  double micrometres;
};

constexpr std::array<LengthUnit, 45> length_units{{{"", 1.0},
                                                   {"\xC2\xB5m", 1.0},  // micro sign
                                                   {"\xCE\xBCm", 1.0},  // Greek mu
                                                   {"\xB5m", 1.0},      // micro sign of Latin-1 in a text called UTF-8
                                                   {"um", 1.0},
                                                   {"micron", 1.0},
                                                   {"microns", 1.0},
                                                   {"micrometer", 1.0},
                                                   {"micrometre", 1.0},
                                                   {"\\u00B5m", 1.0},  // as ImageJ writes it
                                                   {"Ym", 1e30},
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
                                                   {"nm", 1e-3},
                                                   {"pm", 1e-6},
                                                   {"fm", 1e-9},
                                                   {"am", 1e-12},
                                                   {"zm", 1e-15},
                                                   {"ym", 1e-18},
                                                   {"\xC3\x85", 1e-4},      // A with a ring
                                                   {"\xE2\x84\xAB", 1e-4},  // the sign of the angstrom
                                                   {"\xC5", 1e-4},
                                                   {"thou", 25.4},
                                                   {"li", 25400.0 / 12.0},
                                                   {"in", 25400.0},
                                                   {"inch", 25400.0},
                                                   {"ft", 304800.0},
                                                   {"yd", 914400.0},
                                                   {"mi", 1609344e3},
                                                   {"ua", 149597870700e6},
                                                   {"ly", 9460730472580800e6},
                                                   {"pc", 3.0856775814913673e22},
                                                   {"pt", 25400.0 / 72.0},
                                                   {"nanometer", 1e-3}}};

}  // namespace

std::optional<double> said_number(std::string_view text, std::string_view what, SlideInfo& info) {
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  const std::optional<double> value = positive_number(text);
  if (!value) {
    const std::string quoted = quoted_number(text);
    const std::string shown = quoted == unknown_value ? std::string() : quoted + ", ";
    info.warnings.push_back(std::string(what) + " is " + shown + "no positive number: it is passed over");
  }
  return value;
}

std::optional<double> micrometres_of(std::string_view unit) {
  const auto found = std::ranges::find(length_units, trimmed(unit), &LengthUnit::name);
  if (found == length_units.end()) return std::nullopt;
  return found->micrometres;
}

std::optional<double> said_pixel_size(const std::optional<double>& micrometres, std::string_view what, SlideInfo& info,
                                      double most) {
  const auto is_size = [most](double size) {
    return size >= least_pixel_size && size <= most && size < most_pixel_size;
  };
  if (!micrometres || is_size(*micrometres)) return micrometres;
  std::ostringstream text;
  text << what << " is " << *micrometres << " micrometres, no size of a slide's pixel: it is passed over";
  info.warnings.push_back(text.str());
  return std::nullopt;
}

}  // namespace slidestream
