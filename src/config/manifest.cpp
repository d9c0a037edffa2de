#include "config/manifest.hpp"

#include <algorithm>
#include <slidestream/error.hpp>

#include "config/csv.hpp"

namespace slidestream {

namespace {

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

}  // namespace

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

std::vector<ManifestLine> csv_entries(std::string_view text, const std::string& origin) {
  std::vector<CsvRecord> records = parse_csv(text, origin);
  if (records.empty()) return {};
  const auto& header = records.front().fields;
  const auto named = std::ranges::find(header, "path");
  const bool has_header = named != header.end();
  const std::size_t column = has_header ? static_cast<std::size_t>(named - header.begin()) : 0;
  std::vector<ManifestLine> entries;
  for (std::size_t i = has_header ? 1 : 0; i < records.size(); ++i) {
    CsvRecord& record = records[i];
    if (column >= record.fields.size()) {
      throw ConfigError(origin + ":" + std::to_string(record.line) + ": " + std::to_string(record.fields.size()) +
                        " fields; expected the path in field " + std::to_string(column + 1));
    }
    entries.push_back({record.line, std::move(record.fields[column])});
  }
  return entries;
}

}  // namespace slidestream
