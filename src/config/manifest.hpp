#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace slidestream {

/// One line of a manifest that names a slide.
struct ManifestLine {
  std::size_t line = 0;        ///< from 1
  std::string path;            ///< as it stands there
  double mpp = 0.0;            ///< micrometres per pixel of level 0; 0: the line doesn't say
  bool may_be_header = false;  ///< the first line of CSV without a column `path`
};

/// Of a text with a path a line: blank lines and comments (`#`) are left out.
std::vector<ManifestLine> list_entries(std::string_view text);

/// Of CSV: the column `path`, or the first where there is no such header; with a header the column `mpp`, too, where it
/// has one. Columns are found as by `find_column`; one whose name is nearly one of these adds a warning.
/// \throws ConfigError naming `origin` and the line.
std::vector<ManifestLine> csv_entries(std::string_view text, const std::string& origin,
                                      std::vector<std::string>& warnings);

}  // namespace slidestream
