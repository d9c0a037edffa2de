#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slidestream {

/// One record of a CSV text.
struct CsvRecord {
  std::size_t line = 0;  ///< where it begins, from 1
  std::vector<std::string> fields;
};

/// Most fields of a record: a table may have a column for each gene.
inline constexpr std::size_t most_csv_fields = std::size_t{1} << 16;
/// Most bytes of a record in its text: 256 a field. Its copies are as long.
inline constexpr std::size_t most_csv_bytes = std::size_t{1} << 24;

/// Splits RFC 4180 text into records, one at a time: quoted fields may hold commas, doubled quotes and line ends;
/// records end in LF, CRLF or CR; empty lines are skipped.
class CsvReader {
 public:
  /// \param text  outlives this. \param origin  what errors call it. \param separator  in place of the comma
  /// \param line  that the text begins in
  CsvReader(std::string_view text, std::string_view origin, char separator = ',', std::size_t line = 1)
      : text_(text), origin_(origin), separator_(separator), line_(line) {}

  /// The next record; nothing at the end. \throws ConfigError that names the line, for a quote that isn't closed, text
  /// after a closing quote, or a record of more than `most_csv_fields` fields or `most_csv_bytes`.
  std::optional<CsvRecord> next();

 private:
  bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool at_line_end() const { return at_ == text_.size() || text_[at_] == '\n' || text_[at_] == '\r'; }
  [[noreturn]] void fail(std::size_t line, const std::string& what) const;
  [[noreturn]] void fail_after_quote() const;
  CsvRecord next_record();
  void check_length() const;
  std::string plain_field();
  std::string quoted_field();
  void skip_line_end();

  std::string_view text_;
  std::string origin_;
  char separator_;
  std::size_t at_ = 0;
  std::size_t line_;
  std::size_t record_at_ = 0;  ///< where the record begins
  std::size_t record_line_ = 1;
};

/// All records of a text, whose byte order mark is skipped. \throws ConfigError as `CsvReader::next`
std::vector<CsvRecord> parse_csv(std::string_view text, std::string_view origin, char separator = ',');

/// A header's cell as columns are told apart: small letters, without spaces around it.
std::string column_name(std::string_view cell);

/// Where `header` has a column of this name, whatever the case of its letters and the spaces around it; one that is
/// written exactly so goes first. Nothing: it has none.
std::optional<std::size_t> find_column(const std::vector<std::string>& header, std::string_view name);

/// `origin` is what errors call the text. \throws ConfigError where another column has this column's name, whatever the
/// case of its letters and the spaces around it.
void require_only(const std::vector<std::string>& header, std::size_t column, const std::string& origin);

/// A field of such a record: in quotes when it needs them.
std::string csv_field(std::string_view text);

/// What a program that computes cells shows as `text`: a ' stands before what it would take for a formula, and spaces
/// in place of control characters. Numbers stay.
std::string spreadsheet_text(std::string_view text);

/// The text without a UTF-8 byte order mark.
std::string_view without_bom(std::string_view text);

}  // namespace slidestream
