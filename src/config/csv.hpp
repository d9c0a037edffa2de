#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace slidestream {

/// One record of a CSV text.
struct CsvRecord {
  std::size_t line = 0;  ///< where it begins, from 1
  std::vector<std::string> fields;
};

/// Splits RFC 4180 text into records: quoted fields may hold commas, doubled quotes and line ends; records end in LF,
/// CRLF or CR; a byte order mark is skipped, and so are empty lines. `origin` is what errors call the text.
/// \throws ConfigError for a quote that isn't closed, or text after a closing quote.
std::vector<CsvRecord> parse_csv(std::string_view text, std::string_view origin);

/// A field of such a record: in quotes when it needs them.
std::string csv_field(std::string_view text);

/// The text without a UTF-8 byte order mark.
std::string_view without_bom(std::string_view text);

}  // namespace slidestream
