#include "slide/tiff/vips_xml.hpp"

#include <optional>
#include <pugixml.hpp>
#include <string_view>

#include "slide/number_text.hpp"

namespace slidestream {

SaidPixelSize size_by_vips_xml(std::string_view description, SlideInfo& info) {
  // Other XML isn't parsed for nothing.
  if (description.find("openslide.mpp-") == std::string_view::npos) return {};
  const std::string_view text = description.substr(description.find('<'));
  pugi::xml_document document;
  if (!document.load_buffer(text.data(), text.size())) return {};
  const auto said = [&](std::string_view name) -> std::optional<double> {
    for (const pugi::xml_node& property : document.child("image").child("properties").children("property")) {
      if (property.child_value("name") == name) return said_number(property.child_value("value"), name, info);
    }
    return std::nullopt;
  };
  constexpr std::string_view x = "openslide.mpp-x";
  constexpr std::string_view y = "openslide.mpp-y";
  const std::optional<double> across = said(x);
  return said_pixel_sizes({across, said(y)}, x, y, info);
}

}  // namespace slidestream
