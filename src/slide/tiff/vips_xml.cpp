#include "slide/tiff/vips_xml.hpp"

#include <charconv>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "slide/number_text.hpp"

namespace slidestream {
namespace {

/// The level of a slide that libvips read; 0 if the property says no number.
unsigned level_number(std::string_view text) {
  unsigned level = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), level);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() ? level : 0;
}

}  // namespace

SaidPixelSize size_by_vips_xml(std::string_view description, SlideInfo& info) {
  // Other XML isn't parsed for nothing.
  if (description.find("openslide.") == std::string_view::npos) return {};
  const std::string_view text = description.substr(description.find('<'));
  pugi::xml_document document;
  if (!document.load_buffer(text.data(), text.size())) return {};
  const auto value_of = [&](std::string_view name) -> std::string_view {
    for (const pugi::xml_node& property : document.child("image").child("properties").children("property")) {
      if (property.child_value("name") == name) return property.child_value("value");
    }
    return {};
  };
  const auto said = [&](std::string_view name) { return said_number(value_of(name), name, info); };
  constexpr std::string_view x = "openslide.mpp-x";
  constexpr std::string_view y = "openslide.mpp-y";
  const std::optional<double> across = said(x);
  const SaidPixelSize size = said_pixel_sizes({across, said(y)}, x, y, info);
  const unsigned level = level_number(value_of("slide-level"));
  if (level == 0) {
    info.magnification = said("openslide.objective-power");
  } else if (size.x || size.y) {
    info.warnings.push_back("the description says that the file was made from level " + std::to_string(level) +
                            " of a slide: its pixel size may be level 0's; input.mpp sets another one");
  }
  return size;
}

}  // namespace slidestream
