#pragma once

#include <string_view>

/// \file
/// What the page that shows a pyramid is made of, as it lies in page/ and in Leaflet's folder.

namespace slidestream {

std::string_view view_markup();
std::string_view view_script();
std::string_view leaflet_script();  ///< Leaflet, minified
std::string_view leaflet_style();   ///< its style sheet
std::string_view leaflet_licence();

}  // namespace slidestream
