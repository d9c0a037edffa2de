#include "report/sweep_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <slidestream/error.hpp>
#include <sstream>

#include "config/csv.hpp"

namespace slidestream::report {

namespace {

std::optional<double> number(const std::string& text) {
  double value = 0.0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// The fields of a record by column name; one that isn't there is empty.
class Row {
 public:
  Row(const std::vector<std::string>& header, const std::vector<std::string>& fields)
      : header_(header), fields_(fields) {}

  const std::string& operator[](std::string_view column) const {
    static const std::string nothing;
    const auto found = std::ranges::find(header_, column);
    const auto at = static_cast<std::size_t>(found - header_.begin());
    return at < fields_.size() ? fields_[at] : nothing;
  }

 private:
  const std::vector<std::string>& header_;
  const std::vector<std::string>& fields_;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// The keys that `swept` names in any row, else the columns named after settings that vary, else all of those.
std::vector<std::string> keys_of(const std::vector<CsvRecord>& records) {
  const std::vector<std::string>& header = records.front().fields;
  std::vector<std::string> all;
  for (const std::string& column : header) {
    if (column.find('.') != std::string::npos) all.push_back(column);
  }
  std::vector<std::string> keys;
  for (const std::string& key : all) {
    const auto counts = [&](const CsvRecord& record) {
      const std::vector<std::string> swept = words(Row(header, record.fields)["swept"]);
      return std::ranges::find(swept, key) != swept.end();
    };
    if (std::any_of(records.begin() + 1, records.end(), counts)) keys.push_back(key);
  }
  if (!keys.empty()) return keys;
  for (const std::string& key : all) {
    const auto varies = [&](const CsvRecord& record) {
      return Row(header, record.fields)[key] != Row(header, records[1].fields)[key];
    };
    if (records.size() > 1 && std::any_of(records.begin() + 1, records.end(), varies)) keys.push_back(key);
  }
  return keys.empty() ? all : keys;
}

[[noreturn]] void fail_at(std::string_view origin, std::size_t line, const std::string& what) {
  throw ConfigError(std::string(origin) + ":" + std::to_string(line) + ": " + what);
}

/// Sweeps write texts without control characters.
void check_text(std::string_view text, std::string_view origin) {
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\r' && c != '\n') || byte == 0x7f;
  };
  const auto found = std::ranges::find_if(text, is_control);
  if (found == text.end()) return;
  fail_at(origin, 1 + static_cast<std::size_t>(std::count(text.begin(), found, '\n')),
          "a control character; this program's sweeps have none");
}

/// A last row may be cut off while the sweep writes it, or where it was killed.
void drop_cut_row(std::vector<CsvRecord>& records, std::string_view text) {
  constexpr std::size_t longest_row = 65536;
  const std::size_t row = text.size() - (text.rfind('\n') + 1);
  const bool is_cut = records.size() > 1 && row > 0 && row < longest_row;
  if (is_cut && records.back().fields.size() < records.front().fields.size()) records.pop_back();
}

/// \throws ConfigError naming the line where a row has other columns than the header, or no time
void check_rows(const std::vector<CsvRecord>& records, std::string_view origin) {
  const std::vector<std::string>& header = records.front().fields;
  for (auto record = records.begin() + 1; record != records.end(); ++record) {
    if (record->fields.size() != header.size()) {
      fail_at(origin, record->line,
              "has " + std::to_string(record->fields.size()) + " fields, not " + std::to_string(header.size()));
    }
    const Row row(header, record->fields);
    const std::string& text = row["seconds"];
    if (text.empty() && row["status"] != "done") continue;
    const double seconds = number(text).value_or(0.0);
    if (!(seconds > 0 && seconds < 1e9)) fail_at(origin, record->line, "has no time");
  }
}

}  // namespace

double SweepPoint::median() const { return summarise(seconds).median; }

SweepTable read_sweep(std::string_view text, std::string_view origin) {
  check_text(text, origin);
  std::vector<CsvRecord> records = parse_csv(text, origin);
  SweepTable table;
  if (records.empty()) throw ConfigError(std::string(origin) + ": is empty; expected a sweep's runs");
  drop_cut_row(records, text);
  const std::vector<std::string>& header = records.front().fields;
  table.keys = keys_of(records);
  if (table.keys.empty() || std::ranges::find(header, "seconds") == header.end()) {
    throw ConfigError(std::string(origin) + ": isn't a sweep's: expected columns named after settings, and seconds");
  }
  check_rows(records, origin);
  std::map<std::vector<std::string>, std::size_t> places;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const Row row(header, records[i].fields);
    std::vector<std::string> values;
    for (const std::string& key : table.keys) values.push_back(row[key]);
    const auto [place, is_new] = places.try_emplace(values, table.points.size());
    if (is_new) table.points.push_back({.values = values, .seconds = {}, .again = {}, .note = {}});
    SweepPoint& point = table.points[place->second];
    point.base = point.base || row["base"] == "yes";
    const std::optional<double> seconds = number(row["seconds"]);
    if (!row["phase"].empty() && row["phase"] != "grid") {
      if (seconds) point.again.push_back(*seconds);
    } else if (seconds) {
      point.seconds.push_back(*seconds);
    } else if (point.note.empty()) {
      point.note = row["reason"].empty() ? row["status"] : row["reason"];
    }
  }
  return table;
}

std::optional<SweepVerdict> verdict_of(const SweepTable& table) {
  const auto base = std::ranges::find_if(table.points, [](const SweepPoint& point) { return point.base; });
  if (base == table.points.end() || base->again.empty()) return std::nullopt;
  std::optional<std::size_t> winner;
  for (std::size_t i = 0; i < table.points.size(); ++i) {
    const SweepPoint& point = table.points[i];
    if (point.base || point.seconds.empty() || point.again.empty()) continue;
    if (!winner || point.median() < table.points[*winner].median()) winner = i;
  }
  if (!winner) return std::nullopt;
  return SweepVerdict{*winner, compare_times(table.points[*winner].again, base->again)};
}

}  // namespace slidestream::report
