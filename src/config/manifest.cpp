#include "config/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <slidestream/error.hpp>
#include <system_error>

#include "config/csv.hpp"
#include "config/suggest.hpp"

namespace slidestream {

namespace {

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

/// 0 for an empty cell. \throws ConfigError naming `place`
double mpp_of(std::string_view text, const std::string& place) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return 0.0;
  text = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  double mpp = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mpp);
  if (error != std::errc() || end != text.data() + text.size() || !(mpp >= 0.001 && mpp <= 1000.0)) {
    throw ConfigError(place + ": mpp is '" + one_line(text) + "'; expected 0.001 to 1000, or nothing");
  }
  return mpp;
}

/// One line for the first column that may have been meant to be the column `known`, which isn't there.
void warn_of_slips(const std::vector<std::string>& header, const std::string& origin, std::string_view known,
                   std::vector<std::string>& warnings) {
  const auto slip = std::ranges::find_if(
      header, [&](const std::string& cell) { return edit_distance(column_name(cell), known) == 1; });
  if (slip == header.end()) return;
  warnings.push_back(origin + ": column '" + one_line(*slip) + "' isn't known, and is passed over" +
                     did_you_mean(known));
}

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

std::vector<ManifestLine> csv_entries(std::string_view text, const std::string& origin,
                                      std::vector<std::string>& warnings) {
  std::vector<CsvRecord> records = parse_csv(text, origin);
  if (records.empty()) return {};
  const auto& header = records.front().fields;
  const auto named = find_column(header, "path");
  const bool has_header = named.has_value();
  const std::size_t column = named.value_or(0);
  const auto mpp = has_header ? find_column(header, "mpp") : std::nullopt;
  if (has_header && !mpp) warn_of_slips(header, origin, "mpp", warnings);
  std::vector<ManifestLine> entries;
  for (std::size_t i = has_header ? 1 : 0; i < records.size(); ++i) {
    CsvRecord& record = records[i];
    const std::string place = origin + ":" + std::to_string(record.line);
    if (column >= record.fields.size()) {
      throw ConfigError(place + ": " + std::to_string(record.fields.size()) + " fields; expected the path in field " +
                        std::to_string(column + 1));
    }
    ManifestLine entry{record.line, std::move(record.fields[column])};
    if (mpp && *mpp < record.fields.size()) entry.mpp = mpp_of(record.fields[*mpp], place);
    entry.may_be_header = !has_header && i == 0;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace slidestream
