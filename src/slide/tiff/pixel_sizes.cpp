#include "slide/tiff/pixel_sizes.hpp"

#include <tiff.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "config/positive_number.hpp"
#include "slide/number_text.hpp"

namespace slidestream {
namespace {

constexpr double least_by_resolution = 0.001;
constexpr std::uint64_t unit_millimetre = 4;  // of no standard, but written
constexpr std::uint64_t unit_micrometre = 5;

/// Micrometres of the unit that ImageJ's description names.
std::optional<double> unit_of_imagej(std::string_view description) {
  if (!description.starts_with("ImageJ=")) return std::nullopt;
  constexpr std::string_view key = "\nunit=";
  const std::size_t at = description.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view unit = description.substr(at + key.size());
  const std::string_view name = trimmed(unit.substr(0, unit.find('\n')));
  return name.empty() ? std::nullopt : micrometres_of(name);
}

std::optional<double> unit_of(std::uint64_t unit, std::string_view description) {
  switch (unit) {
    case RESUNIT_NONE:
      return unit_of_imagej(description);
    case RESUNIT_INCH:
      return 25400.0;
    case RESUNIT_CENTIMETER:
      return 10000.0;
    case unit_millimetre:
      return 1000.0;
    case unit_micrometre:
      return 1.0;
    default:
      return std::nullopt;
  }
}

}  // namespace

SaidPixelSize size_by_resolution(const RawTiff& raw, const RawDirectory& directory, std::string_view description,
                                 std::vector<std::string>& warnings) {
  if (directory.find(TIFFTAG_XRESOLUTION) == nullptr && directory.find(TIFFTAG_YRESOLUTION) == nullptr) return {};
  std::uint64_t said_unit = RESUNIT_INCH;
  if (directory.find(TIFFTAG_RESOLUTIONUNIT) != nullptr) {
    std::string fault;
    const std::optional<std::uint64_t> value = raw.only_number(directory, TIFFTAG_RESOLUTIONUNIT, fault);
    const bool is_known = value && *value >= RESUNIT_NONE && *value <= unit_micrometre;
    if (!is_known) {
      warnings.push_back("ResolutionUnit " + (value ? std::to_string(*value) + " isn't known" : fault) +
                         ": the resolution is passed over");
      return {};
    }
    said_unit = *value;
  }
  const std::optional<double> unit = unit_of(said_unit, description);
  const auto along = [&](std::uint16_t tag) -> std::optional<double> {
    const std::optional<float> resolution = raw.real(directory, tag);
    if (!unit || !resolution) return std::nullopt;
    const double size = *unit / static_cast<double>(*resolution);
    return size > 0.0 && std::isfinite(size) ? std::optional(size) : std::nullopt;
  };
  const SaidPixelSize said{along(TIFFTAG_XRESOLUTION), along(TIFFTAG_YRESOLUTION)};
  const auto is_scanned = [](const std::optional<double>& size) { return size && *size <= most_scanned_pixel_size; };
  if (are_far_apart(said) && (is_scanned(said.x) || is_scanned(said.y))) return said;
  const auto checked = [&](const std::optional<double>& size, const char* name) -> std::optional<double> {
    if (!is_scanned(size)) return std::nullopt;
    if (*size >= least_by_resolution) return size;
    std::ostringstream text;
    text << name << " says " << *size << " micrometres, no size of a slide's pixel: it is passed over";
    warnings.push_back(text.str());
    return std::nullopt;
  };
  const std::optional<double> x = checked(said.x, "XResolution");
  return {x, checked(said.y, "YResolution")};
}

}  // namespace slidestream
