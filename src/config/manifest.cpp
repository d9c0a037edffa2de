#include "config/manifest.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <slidestream/error.hpp>
#include <system_error>

#include "config/csv.hpp"
#include "config/positive_number.hpp"
#include "config/quoted_text.hpp"
#include "config/read_file.hpp"
#include "config/suggest.hpp"

namespace slidestream {

namespace {

/// A million paths of 250 bytes. The table of a run's slides is read back up to the same size.
constexpr std::size_t largest_list = std::size_t{1} << 28;

constexpr std::array<std::string_view, 5> slide_columns = {"path", "wsi", "slide", "filename", "file"};

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

/// 0 for an empty cell. \throws ConfigError naming `place`
double mpp_of(std::string_view text, const std::string& place) {
  text = trimmed(text);
  if (text.empty()) return 0.0;
  const double mpp = positive_number(text).value_or(0.0);
  if (!(mpp >= 0.001 && mpp <= 1000.0)) {
    // What is no number may be a name: it isn't repeated.
    const std::string number = quoted_number(text);
    throw ConfigError(place + ": mpp is " + (number == unknown_value ? "no number" : number) +
                      "; expected 0.001 to 1000, or nothing");
  }
  return mpp;
}

/// Whether a text in small letters is a unit of micrometres per pixel: "um/px", "microns per pixel".
bool is_micrometres_per_pixel(std::string unit) {
  // No unit is longer, whatever separates its words. Each sign for micro moves what is behind it.
  constexpr std::size_t longest = 256;
  if (unit.size() > longest) return false;
  // The sign for micro, the Greek letter, and the sign in Latin-1.
  for (const std::string_view micro : {"\xc2\xb5", "\xce\xbc", "\xb5"}) {
    for (std::size_t at = 0; (at = unit.find(micro, at)) != std::string::npos;) unit.replace(at, micro.size(), "u");
  }
  std::erase_if(unit, [](char c) { return std::string_view(" _-.").find(c) != std::string_view::npos; });
  if (unit.empty()) return false;
  for (const char* length : {"um", "micron", "microns", "micrometer", "micrometers", "micrometre", "micrometres"}) {
    for (const char* per : {"/", "per"}) {
      for (const char* pixel : {"px", "pixel", "pixels"}) {
        if (unit == std::string(length) + per + pixel) return true;
      }
    }
  }
  return false;
}

/// Whether a column has micrometres per pixel: "mpp", or "MPP (um/px)".
bool is_mpp(const std::string& cell) {
  constexpr std::string_view mpp = "mpp";
  const std::string name = column_name(cell);
  if (!name.starts_with(mpp)) return false;
  const std::string_view unit = trimmed(std::string_view(name).substr(mpp.size()));
  if (unit.empty()) return true;
  const bool has_brackets = (unit.front() == '(' && unit.back() == ')') || (unit.front() == '[' && unit.back() == ']');
  return has_brackets && unit.size() > 2 && is_micrometres_per_pixel(std::string(unit.substr(1, unit.size() - 2)));
}

/// Whether a column's name says sizes of pixels in other words than `is_mpp`: "mpp_x", "slide mpp", "pixel size".
bool is_other_pixel_size(const std::string& cell) {
  const std::string name = column_name(cell);
  if (name.starts_with("mpp") || is_micrometres_per_pixel(name)) return true;
  const auto is_of_word = [](char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9'); };
  std::string before;
  for (auto at = name.begin(); at != name.end();) {
    const auto begin = std::find_if(at, name.end(), is_of_word);
    at = std::find_if_not(begin, name.end(), is_of_word);
    const std::string word(begin, at);
    if (word == "mpp" || word.starts_with("pixelsize") || (before == "pixel" && word.starts_with("size"))) return true;
    before = word;
  }
  return false;
}

/// One line for the first column beside the slides' that may have been meant to be the column mpp, which isn't there.
void warn_of_slips(const std::vector<std::string>& header, std::size_t slides, const std::string& origin,
                   std::vector<std::string>& warnings) {
  constexpr std::string_view known = "mpp";
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (i == slides || (edit_distance(column_name(header[i]), known) != 1 && !is_other_pixel_size(header[i]))) continue;
    // The name of a column that isn't known may be a person's.
    warnings.push_back(origin + ": column " + std::to_string(i + 1) + " isn't known, and is passed over" +
                       did_you_mean(known));
    return;
  }
}

/// Behind any header.
constexpr std::size_t no_column = std::numeric_limits<std::size_t>::max();

/// Where a header has sizes of pixels, else `no_column`. \throws ConfigError where two columns have them
std::size_t mpp_column(const std::vector<std::string>& header, const std::string& origin) {
  const auto found = std::ranges::find_if(header, is_mpp);
  if (found == header.end()) return no_column;
  const auto column = static_cast<std::size_t>(found - header.begin());
  require_only(header, column, origin);
  const auto other = std::find_if(found + 1, header.end(), is_mpp);
  if (other != header.end()) {
    throw ConfigError(origin + ": columns '" + one_line(*found) + "' and '" + one_line(*other) +
                      "' are both sizes of pixels; expected one");
  }
  return column;
}

/// Whether a first line may be a header, as none of its cells is a slide or a number, and the first one no path at all.
bool is_header(const std::vector<std::string>& cells, const std::function<bool(const std::string&)>& is_slide) {
  if (std::ranges::any_of(
          cells, [&](const std::string& cell) { return is_slide(cell) || positive_number(cell).has_value(); })) {
    return false;
  }
  const std::string& first = cells.front();
  // Units have a slash, too.
  if (std::ranges::any_of(cells, is_mpp) || is_micrometres_per_pixel(column_name(first))) return true;
  // A slide and its note may be separated otherwise.
  const std::string_view begin = trimmed(std::string_view(first).substr(0, first.find_first_of(";\t|")));
  return first.find_first_of("/\\") == std::string::npos && !is_slide(std::string(begin));
}

char header_separator(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  const std::string_view first = text.substr(0, text.find_first_of("\r\n"));
  // A quote that ends in a later line says nothing of the header.
  if (std::ranges::count(first, '"') % 2 != 0) return ',';
  for (const char separator : {',', ';', '\t', '|'}) {
    if (first.find(separator) == std::string_view::npos) continue;
    try {
      const std::vector<CsvRecord> records = parse_csv(first, "", separator);
      if (records.empty()) break;
      const auto& header = records.front().fields;
      if (slide_column(header) || std::ranges::any_of(header, is_mpp)) return separator;
    } catch (const ConfigError&) {
      // Not by this separator; what is wrong is said where the whole text is read.
    }
  }
  return ',';
}

std::size_t end_of_line(std::string_view text, std::size_t at) {
  return std::min(text.find_first_of("\r\n", at), text.size());
}

std::size_t behind_line_ends(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of("\r\n", at), text.size());
}

bool has_known_column(std::string_view text) {
  try {
    const std::string_view first = text.substr(0, end_of_line(text, 0));
    const std::vector<CsvRecord> records = parse_csv(first, "", header_separator(text));
    return !records.empty() &&
           (slide_column(records.front().fields) || std::ranges::any_of(records.front().fields, is_mpp));
  } catch (const ConfigError&) {
    return false;
  }
}

/// Where the header begins behind comments (`#`), if it is known. 0 where there are none.
std::size_t behind_comments(std::string_view text) {
  std::size_t at = behind_line_ends(text, 0);
  if (at == text.size() || text[at] != '#') return 0;
  while (at < text.size() && text[at] == '#') at = behind_line_ends(text, end_of_line(text, at));
  // Another first line with # may be a header, or a slide.
  return has_known_column(text.substr(at)) ? at : 0;
}

/// Ends of lines: LF, CRLF or CR.
std::size_t count_lines(std::string_view text) {
  std::size_t lines = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    lines += text[i] == '\r' || (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) ? 1 : 0;
  }
  return lines;
}

/// The slide that a record names. \throws ConfigError naming its line
ManifestLine entry_of(CsvRecord& record, std::size_t column, std::size_t mpp_at, const std::string& origin) {
  const std::string place = origin + ":" + std::to_string(record.line);
  if (column >= record.fields.size()) {
    throw ConfigError(place + ": " + std::to_string(record.fields.size()) +
                      (record.fields.size() == 1 ? " field" : " fields") + "; expected the path in field " +
                      std::to_string(column + 1));
  }
  ManifestLine entry{record.line, std::move(record.fields[column])};
  if (mpp_at < record.fields.size()) entry.mpp = mpp_of(record.fields[mpp_at], place);
  return entry;
}

/// Refuses a list in UTF-16, as spreadsheets save "Unicode text", and others at their first NUL byte.
class TextCheck {
 public:
  explicit TextCheck(const std::string& origin) : origin_(origin) {}

  void operator()(std::string_view piece) {
    const bool is_utf16 = piece.starts_with("\xff\xfe") || piece.starts_with("\xfe\xff");
    if (is_first_ && is_utf16) throw ConfigError(origin_ + ": is text in UTF-16; save it as UTF-8");
    is_first_ = is_first_ && piece.empty();
    const std::string_view before = piece.substr(0, piece.find('\0'));
    line_ += static_cast<std::size_t>(std::ranges::count(before, '\n'));
    if (before.size() == piece.size()) return;
    throw ConfigError(origin_ + ":" + std::to_string(line_) + ": a NUL byte; expected a text file");
  }

 private:
  std::string origin_;
  std::size_t line_ = 1;
  bool is_first_ = true;
};

std::string read_standard_input() {
  const std::string origin = "standard input";
  TextCheck check(origin);
  std::string text;
  char buffer[65536];
  while (true) {
    const ::ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw ConfigError(origin + ": " + std::generic_category().message(errno));
    if (count == 0) return text;
    const std::string_view piece(buffer, static_cast<std::size_t>(count));
    check(piece);
    if (piece.size() > largest_list - text.size()) {
      throw ConfigError(origin + ": larger than " + std::to_string(largest_list >> 20) + " MiB");
    }
    text += piece;
  }
}

}  // namespace

std::string read_list(const std::string& input) {
  if (input == "-") return read_standard_input();
  return read_file(input, largest_list, FileOrigin::given, TextCheck(input));
}

std::vector<ManifestLine> list_entries(std::string_view text) {
  text = without_bom(text);
  std::vector<ManifestLine> entries;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_blank(line) && !line.starts_with('#')) entries.push_back({number, std::string(line)});
  }
  return entries;
}

CsvReader list_reader(std::string_view text, const std::string& origin) {
  constexpr std::string_view key = "sep=";
  text = without_bom(text);
  if (const std::size_t at = behind_comments(text); at > 0) {
    const std::string_view table = text.substr(at);
    return {table, origin, header_separator(table), 1 + count_lines(text.substr(0, at))};
  }
  const std::string_view first = text.substr(0, text.find_first_of("\r\n"));
  if (first.size() != key.size() + 1 || column_name(first.substr(0, key.size())) != key) {
    return {text, origin, header_separator(text)};
  }
  // An empty line in its place: lines keep their numbers.
  return {text.substr(first.size()), origin, first.back()};
}

std::size_t named_columns(const std::vector<std::string>& header, std::size_t least) {
  std::size_t named = header.size();
  while (named > least && is_blank(header[named - 1])) --named;
  return named;
}

void require_no_surplus(std::size_t named, const CsvRecord& record, const std::string& origin) {
  std::size_t count = record.fields.size();
  while (count > named && is_blank(record.fields[count - 1])) --count;
  if (count <= named) return;
  throw ConfigError(origin + ":" + std::to_string(record.line) + ": " + std::to_string(count) +
                    " fields, but the header has " + std::to_string(named) +
                    "; put a value with a separator in it in quotes, or write a decimal point");
}

std::optional<std::size_t> slide_column(const std::vector<std::string>& header) {
  for (const std::string_view name : slide_columns) {
    if (const auto found = find_column(header, name)) return found;
  }
  return std::nullopt;
}

std::vector<ManifestLine> csv_entries(std::string_view text, const std::string& origin,
                                      const std::function<bool(const std::string&)>& is_slide,
                                      std::vector<std::string>& warnings) {
  // Records aren't kept: their cells take many times the text's bytes.
  CsvReader reader = list_reader(text, origin);
  std::optional<CsvRecord> first = reader.next();
  if (!first) return {};
  std::optional<CsvRecord> record = reader.next();
  const auto& header = first->fields;
  const auto named = slide_column(header);
  const bool has_header = named || is_header(header, is_slide);
  std::size_t column = named.value_or(0);
  if (has_header && !named && record) {
    const auto found = std::ranges::find_if(record->fields, is_slide);
    if (found != record->fields.end()) column = static_cast<std::size_t>(found - record->fields.begin());
  }
  if (has_header && column < header.size() && column_name(header[column]) != slide_columns.front()) {
    // A cell of an unknown name may be a slide's, or a patient's: it isn't repeated.
    warnings.push_back(origin + ": " +
                       (named ? "the slides are those of column '" + one_line(header[column]) + "'"
                              : "line " + std::to_string(first->line) +
                                    " is taken for a header without a column path; the slides are those of column " +
                                    std::to_string(column + 1)));
  }
  if (named) require_only(header, *named, origin);
  const std::size_t mpp_at = has_header ? mpp_column(header, origin) : no_column;
  if (has_header && mpp_at == no_column) warn_of_slips(header, column, origin, warnings);
  // Once: there may be as many lines as columns.
  const std::size_t columns = named_columns(header, column + 1);
  std::vector<ManifestLine> entries;
  bool has_further_cells = false;
  const auto add = [&](CsvRecord& from) {
    if (has_header) {
      require_no_surplus(columns, from, origin);
    } else {
      has_further_cells = has_further_cells || !std::all_of(from.fields.begin() + 1, from.fields.end(), is_blank);
    }
    entries.push_back(entry_of(from, column, mpp_at, origin));
  };
  if (!has_header) add(*first);
  for (; record; record = reader.next()) add(*record);
  if (has_further_cells) {
    warnings.push_back(origin +
                       ": has no header, so cells after the path aren't read; name the columns in a first line, such "
                       "as path,mpp");
  }
  return entries;
}

}  // namespace slidestream
