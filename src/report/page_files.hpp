#pragma once

#include <string_view>

/// \file
/// The files that a page is made of. embed.cmake makes the definitions from the files themselves.

namespace slidestream::report {

std::string_view page_markup();   ///< page/report.html
std::string_view page_style();    ///< page/report.css
std::string_view page_script();   ///< page/report.js
std::string_view chart_script();  ///< Chart.js, minified
std::string_view chart_licence();

}  // namespace slidestream::report
