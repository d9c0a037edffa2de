#include "slide/tiff/pixel_sizes.hpp"

#include <tiff.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/positive_number.hpp"
#include "slide/number_text.hpp"
#include "slide/open_budget.hpp"
#include "slide/tiff/aperio.hpp"

namespace slidestream {
namespace {

constexpr double least_by_resolution = 0.001;
constexpr std::uint64_t unit_millimetre = 4;  // of no standard, but written
constexpr std::uint64_t unit_micrometre = 5;

/// Micrometres of a unit along both sides.
struct SideUnits {
  std::optional<double> x;
  std::optional<double> y;
};

/// The values of a key of ImageJ's description, in their order.
std::vector<std::string_view> values_in_imagej(std::string_view description, std::string_view key) {
  std::vector<std::string_view> values;
  if (!description.starts_with("ImageJ=")) return values;
  const std::string line = "\n" + std::string(key) + "=";
  for (std::size_t at = description.find(line); at != std::string_view::npos; at = description.find(line, at + 1)) {
    const std::string_view rest = description.substr(at + line.size());
    values.push_back(trimmed(rest.substr(0, rest.find('\n'))));
  }
  return values;
}

/// Micrometres of the units that ImageJ's description names. One for the height stands there where it is another one.
SideUnits units_of_imagej(std::string_view description) {
  const auto length_of = [&](std::string_view key) -> std::optional<double> {
    const std::vector<std::string_view> values = values_in_imagej(description, key);
    return values.empty() || values.front().empty() ? std::nullopt : micrometres_of(values.front());
  };
  const std::optional<double> x = length_of("unit");
  if (values_in_imagej(description, "yunit").empty()) return {x, x};
  return {x, length_of("yunit")};
}

/// Adds a line where ImageJ's description names a side's unit twice, and differently.
void warn_of_other_units(std::string_view description, std::vector<std::string>& warnings) {
  for (const char* key : {"unit", "yunit"}) {
    const std::vector<std::string_view> values = values_in_imagej(description, key);
    const auto other = std::ranges::find_if(values, [&](std::string_view value) { return value != values.front(); });
    if (other == values.end()) continue;
    warnings.push_back("ImageJ's description says several values of " + std::string(key) + ": the first counts");
  }
}

/// Micrometres of ResolutionUnit; none for what is no unit.
std::optional<double> unit_of_tag(std::uint64_t unit) {
  switch (unit) {
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

bool is_scanned(const std::optional<double>& size) { return size && *size <= most_scanned_pixel_size; }

/// Pixels per unit along both sides; a side without a tag has none.
struct Resolution {
  std::optional<double> x;
  std::optional<double> y;
};

/// Neither side counts where one tag doesn't say one number above 0, which adds a warning.
Resolution read_resolution(const RawTiff& raw, const RawDirectory& directory, std::vector<std::string>& warnings) {
  bool counts = true;
  const auto along = [&](std::uint16_t tag, const char* name) -> std::optional<double> {
    if (directory.find(tag) == nullptr) return std::nullopt;
    std::string fault = "is no positive number";
    const std::optional<float> value = raw.only_real(directory, tag, fault);
    if (value && *value > 0.0F && std::isfinite(*value)) return static_cast<double>(*value);
    warnings.push_back(std::string(name) + " " + fault + ": the resolution is passed over");
    counts = false;
    return std::nullopt;
  };
  const std::optional<double> x = along(TIFFTAG_XRESOLUTION, "XResolution");
  const std::optional<double> y = along(TIFFTAG_YRESOLUTION, "YResolution");
  return counts ? Resolution{x, y} : Resolution{};
}

/// Micrometres along both sides, by the resolution in a unit.
SaidPixelSize sizes_in(const Resolution& resolution, const SideUnits& units) {
  const auto along = [](const std::optional<double>& pixels, const std::optional<double>& unit) {
    return unit && pixels ? std::optional(*unit / *pixels) : std::nullopt;
  };
  return {along(resolution.x, units.x), along(resolution.y, units.y)};
}

/// ImageJ's unit goes before ResolutionUnit, as in ImageJ itself, unless only ResolutionUnit gives a slide's pixels.
SaidPixelSize settled(const SaidPixelSize& by_imagej, const SaidPixelSize& by_tag, bool has_unit,
                      std::vector<std::string>& warnings) {
  const auto one_side = [](const SaidPixelSize& said) { return said.x ? said.x : said.y; };
  const std::optional<double> imagejs = one_side(by_imagej);
  const std::optional<double> tags = one_side(by_tag);
  if (!imagejs || !tags) return imagejs ? by_imagej : by_tag;
  const auto is_slides = [](double size) { return size >= least_by_resolution && size <= most_scanned_pixel_size; };
  const bool imagej_counts = is_slides(*imagejs) || !is_slides(*tags);
  if (has_unit && *imagejs != *tags && (is_slides(*imagejs) || is_slides(*tags))) {
    std::ostringstream text;
    text << "ImageJ's unit gives " << *imagejs << " micrometres per pixel, and ResolutionUnit " << *tags << ": "
         << (imagej_counts ? "ImageJ's" : "ResolutionUnit") << " counts";
    warnings.push_back(text.str());
  }
  return imagej_counts ? by_imagej : by_tag;
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
  const bool has_unit = directory.find(TIFFTAG_RESOLUTIONUNIT) != nullptr;
  const SideUnits imagejs = units_of_imagej(description);
  const std::optional<double> tags = unit_of_tag(said_unit);
  // Without a unit of length they say nothing of sizes.
  if (!imagejs.x && !imagejs.y && !tags) return {};
  warn_of_other_units(description, warnings);
  const Resolution resolution = read_resolution(raw, directory, warnings);
  const SaidPixelSize said =
      settled(sizes_in(resolution, imagejs), sizes_in(resolution, {tags, tags}), has_unit, warnings);
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

void warn_of_lacking_unit(const RawTiff& raw, const RawDirectory& directory, std::vector<std::string>& warnings) {
  std::string fault;
  if (directory.find(TIFFTAG_RESOLUTIONUNIT) == nullptr) return;
  if (raw.only_number(directory, TIFFTAG_RESOLUTIONUNIT, fault) != std::optional<std::uint64_t>(RESUNIT_NONE)) return;
  // What can't be read is another fault, and says nothing without a unit.
  std::vector<std::string> faults;
  const Resolution resolution = read_resolution(raw, directory, faults);
  const auto can_be_scanned = [](const std::optional<double>& pixels) {
    return pixels && *unit_of_tag(RESUNIT_INCH) / *pixels <= most_scanned_pixel_size &&
           *unit_of_tag(RESUNIT_CENTIMETER) / *pixels >= least_by_resolution;
  };
  if (!can_be_scanned(resolution.x) && !can_be_scanned(resolution.y)) return;
  warnings.emplace_back("ResolutionUnit 1 is no unit of length: XResolution and YResolution say no size of pixels");
}

void compare_resolutions(const RawTiff& raw, const std::vector<const Candidate*>& levels, std::string_view description,
                         const SaidPixelSize& said, SlideInfo& info) {
  if ((!said.x && !said.y) || are_far_apart(said)) return;
  std::optional<SaidPixelSize> contrary;
  std::size_t of_level = 0;
  bool repeat = true;
  for (std::size_t i = 1; i < levels.size() && i < info.levels.size(); ++i) {
    std::vector<std::string> faults;  // a level's resolution that can't be used is none
    const SaidPixelSize own = size_by_resolution(raw, levels[i]->raw, description, faults);
    if ((!own.x && !own.y) || are_far_apart(own)) continue;
    repeat = repeat && !are_contrary(said, own);
    if (contrary) continue;
    contrary = contrary_size_by_level(said, info.levels.front(), own, info.levels[i]);
    of_level = i;
  }
  if (repeat || !contrary) return;
  const Level& level = info.levels[of_level];
  compare_pixel_sizes(info, said, "the resolution of the largest image", *contrary,
                      "that of the image of " + std::to_string(level.width) + " x " + std::to_string(level.height) +
                          " pixels gives it");
}

void compare_descriptions(const RawTiff& raw, const std::vector<const Candidate*>& levels, std::string_view description,
                          SlideInfo& info) {
  const DescribedScale largest = scale_in(description);
  const auto compare = [&](const std::optional<double>& said, const std::optional<double>& own, std::size_t at,
                           bool is_power, const char* key) {
    if (!said || !own) return false;
    // Pixels are larger where the power is smaller.
    const auto size_of = [is_power](double value) {
      const double size = is_power ? 1.0 / value : value;
      return SaidPixelSize{size, size};
    };
    const Level& level = info.levels[at];
    if (!are_contrary(size_of(*said), size_of(*own))) return false;
    if (!contrary_size_by_level(size_of(*said), info.levels.front(), size_of(*own), level)) return false;
    std::ostringstream text;
    text << key << " of the description is " << *said << ", and that of the image of " << level.width << " x "
         << level.height << " pixels is " << *own << ", which isn't that by its size: the largest image's counts";
    info.warnings.push_back(text.str());
    return true;
  };
  if (!largest.mpp && !largest.magnification) return;
  bool has_line_of_mpp = false;
  bool has_line_of_power = false;
  for (std::size_t i = 1; i < levels.size() && i < info.levels.size(); ++i) {
    const DescribedScale own =
        scale_in(raw.text(levels[i]->raw, TIFFTAG_IMAGEDESCRIPTION, OpenBudget::most_description));
    has_line_of_mpp = has_line_of_mpp || compare(largest.mpp, own.mpp, i, false, "MPP");
    has_line_of_power = has_line_of_power || compare(largest.magnification, own.magnification, i, true, "AppMag");
  }
}

}  // namespace slidestream
