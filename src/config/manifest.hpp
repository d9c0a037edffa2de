#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace slidestream {

/// One line of a manifest that names a slide.
struct ManifestLine {
  std::size_t line = 0;  ///< from 1
  std::string path;      ///< as it stands there
};

/// Of a text with a path a line: blank lines and comments (`#`) are left out.
std::vector<ManifestLine> list_entries(std::string_view text);

/// Of CSV: the column `path`, or the first where there is no such header. \throws ConfigError naming `origin` and the
/// line.
std::vector<ManifestLine> csv_entries(std::string_view text, const std::string& origin);

}  // namespace slidestream
