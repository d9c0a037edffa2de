#include "config/csv.hpp"

#include <slidestream/error.hpp>

namespace slidestream {

namespace {

class CsvParser {
 public:
  CsvParser(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  std::vector<CsvRecord> parse() {
    std::vector<CsvRecord> records;
    while (at_ < text_.size()) {
      CsvRecord record = next_record();
      // An empty line is one empty field without quotes.
      if (record.fields.size() > 1 || !record.fields.front().empty()) records.push_back(std::move(record));
    }
    return records;
  }

 private:
  bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool at_line_end() const { return at_ == text_.size() || text_[at_] == '\n' || text_[at_] == '\r'; }

  [[noreturn]] void fail(std::size_t line, const char* what) const {
    throw ConfigError(origin_ + ":" + std::to_string(line) + ": " + what);
  }

  CsvRecord next_record() {
    CsvRecord record;
    record.line = line_;
    do {
      record.fields.push_back(at('"') ? quoted_field() : plain_field());
    } while (at(',') && ++at_ > 0);
    skip_line_end();
    return record;
  }

  std::string plain_field() {
    const std::size_t begin = at_;
    while (!at_line_end() && text_[at_] != ',') ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted_field() {
    const std::size_t opened = line_;
    std::string field;
    for (++at_;; ++at_) {
      if (at_ == text_.size()) fail(opened, "a quote is opened and never closed");
      if (text_[at_] == '"') {
        ++at_;
        if (!at('"')) break;
      }
      if (text_[at_] == '\n') ++line_;
      field += text_[at_];
    }
    if (!at_line_end() && text_[at_] != ',') fail(line_, "text after a closing quote; expected a comma or a new line");
    return field;
  }

  void skip_line_end() {
    if (at_ == text_.size()) return;
    const bool carriage_return = at('\r');
    ++at_;
    if (carriage_return && at('\n')) ++at_;
    ++line_;
  }

  std::string_view text_;
  std::string origin_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

std::vector<CsvRecord> parse_csv(std::string_view text, std::string_view origin) {
  return CsvParser(without_bom(text), origin).parse();
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
