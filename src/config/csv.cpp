#include "config/csv.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include <slidestream/error.hpp>

#include "config/printable.hpp"
#include "config/suggest.hpp"

namespace slidestream {

namespace {

std::string_view without_spaces(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

void CsvReader::fail(std::size_t line, const std::string& what) const {
  throw ConfigError(origin_ + ":" + std::to_string(line) + ": " + what);
}

void CsvReader::fail_after_quote() const {
  const char* wanted = separator_ == ';'    ? "semicolon"
                       : separator_ == '\t' ? "tab"
                       : separator_ == '|'  ? "bar"
                                            : "comma";
  fail(line_, std::string("text after a closing quote; expected a ") + wanted + " or a new line");
}

std::optional<CsvRecord> CsvReader::next() {
  while (at_ < text_.size()) {
    CsvRecord record = next_record();
    // An empty line is one empty field without quotes.
    if (record.fields.size() > 1 || !record.fields.front().empty()) return record;
  }
  return std::nullopt;
}

CsvRecord CsvReader::next_record() {
  CsvRecord record;
  record.line = record_line_ = line_;
  record_at_ = at_;
  do {
    if (record.fields.size() == most_csv_fields) {
      fail(record.line, "more than " + std::to_string(most_csv_fields) + " fields in one record");
    }
    record.fields.push_back(at('"') ? quoted_field() : plain_field());
  } while (at(separator_) && ++at_ > 0);
  skip_line_end();
  return record;
}

void CsvReader::check_length() const {
  if (at_ - record_at_ <= most_csv_bytes) return;
  fail(record_line_, "more than " + std::to_string(most_csv_bytes >> 20) + " MiB in one record");
}

std::string CsvReader::plain_field() {
  const std::size_t begin = at_;
  while (!at_line_end() && text_[at_] != separator_) ++at_;
  check_length();
  return std::string(text_.substr(begin, at_ - begin));
}

std::string CsvReader::quoted_field() {
  const std::size_t opened = line_;
  std::string field;
  for (++at_;; ++at_) {
    if (at_ == text_.size()) fail(opened, "a quote is opened and never closed");
    if (text_[at_] == '"') {
      ++at_;
      if (!at('"')) break;
    }
    if (text_[at_] == '\n') ++line_;
    check_length();
    field += text_[at_];
  }
  check_length();
  if (!at_line_end() && text_[at_] != separator_) fail_after_quote();
  return field;
}

void CsvReader::skip_line_end() {
  if (at_ == text_.size()) return;
  const bool carriage_return = at('\r');
  ++at_;
  if (carriage_return && at('\n')) ++at_;
  ++line_;
}

std::string column_name(std::string_view cell) {
  std::string name(without_spaces(cell));
  std::ranges::transform(name, name.begin(),
                         [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name;
}

std::optional<std::size_t> find_column(const std::vector<std::string>& header, std::string_view name) {
  auto found = std::ranges::find(header, name);
  if (found == header.end()) {
    const std::string plain = column_name(name);
    found = std::ranges::find_if(header, [&](const std::string& cell) { return column_name(cell) == plain; });
  }
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

void require_only(const std::vector<std::string>& header, std::size_t column, const std::string& origin) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (i == column || column_name(header[i]) != column_name(header[column])) continue;
    const std::string& first = header[std::min(i, column)];
    const std::string& second = header[std::max(i, column)];
    throw ConfigError(origin + ": two columns are called '" + one_line(first) +
                      (first == second ? "'" : "' and '" + one_line(second) + "', which are one name") +
                      "; expected one");
  }
}

std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

std::vector<CsvRecord> parse_csv(std::string_view text, std::string_view origin, char separator) {
  CsvReader reader(without_bom(text), origin, separator);
  std::vector<CsvRecord> records;
  while (std::optional<CsvRecord> record = reader.next()) records.push_back(std::move(*record));
  return records;
}

std::string spreadsheet_text(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return std::string(text);
  const bool formula = !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  return (formula ? "'" : "") + printable(text, ' ');
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

}  // namespace slidestream
