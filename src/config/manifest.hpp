#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/csv.hpp"

namespace slidestream {

/// One line of a manifest that names a slide.
struct ManifestLine {
  std::size_t line = 0;  ///< from 1
  std::string path;      ///< as it stands there
  double mpp = 0.0;      ///< micrometres per pixel of level 0; 0: the line doesn't say
};

/// The text of a list that the user names; "-" is standard input. \throws ConfigError that names it and the cause, such
/// as UTF-16 or more than 256 MiB; at the first NUL byte, which no text has, also the line
std::string read_list(const std::string& input);

/// Of a text with a path a line: blank lines and comments (`#`) are left out.
std::vector<ManifestLine> list_entries(std::string_view text);

/// Reads lines of a table, which outlives it. Columns are separated by what a first line "sep=;" says, as Excel has it;
/// or by a semicolon, tab or bar (|) where that makes a column of the header that is known; else by a comma. Lines
/// before a header with a known column that begin with # are comments.
CsvReader list_reader(std::string_view text, const std::string& origin);

/// How many columns a header names: blank cells at its end don't count, but for its first `least`, as a separator there
/// names no column.
std::size_t named_columns(const std::vector<std::string>& header, std::size_t least = 1);

/// \throws ConfigError naming `origin` and the line, where a record has more fields than its header's `named_columns`
/// and those aren't blank: a comma inside a value has cut it.
void require_no_surplus(std::size_t named, const CsvRecord& record, const std::string& origin);

/// The column of a header that names slides: path, wsi, slide, filename or file, the first of these, as by
/// `find_column`.
std::optional<std::size_t> slide_column(const std::vector<std::string>& header);

/// Of CSV: the column of `slide_column`. A first line without one is a header, too, if none of its cells is a slide by
/// `is_slide` or a number, and its first one has no slash, backslash, or slide in front of a semicolon, tab or bar:
/// then the first column counts whose next cell is a slide, else the first. Without a header the first column does.
/// With a header the column `mpp` counts, also with micrometres per pixel in brackets behind its name, such as "MPP
/// (um/px)". Warnings say which column was taken, unless it is called path, and name a column that was nearly called
/// mpp, or says sizes of pixels in other words. One says that further cells aren't read where there is no header. Two
/// columns of one of these names are refused, and so are lines that `require_no_surplus` refuses. \throws ConfigError
/// naming `origin` and the line.
std::vector<ManifestLine> csv_entries(std::string_view text, const std::string& origin,
                                      const std::function<bool(const std::string&)>& is_slide,
                                      std::vector<std::string>& warnings);

}  // namespace slidestream
