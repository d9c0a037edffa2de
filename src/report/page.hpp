#pragma once

#include <span>
#include <string>
#include <string_view>

/// \file
/// The page of a report: files of `page/` and the chart library, which are part of the program, and the data between
/// them.

namespace slidestream::report {

/// JSON text that can stand inside a script element: nothing in it ends the element or begins a comment.
std::string script_safe(std::string_view json);

/// Text as it stands between HTML's tags.
std::string html_text(std::string_view text);

std::string base64(std::string_view bytes);

/// Bytes of the page without data.
std::size_t empty_page_size();

/// The whole file: `json` is what the page shows.
std::string page(std::string_view json);

}  // namespace slidestream::report
