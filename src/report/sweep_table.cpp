#include "report/sweep_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <slidestream/error.hpp>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "config/csv.hpp"

namespace slidestream::report {

namespace {

std::optional<double> number(const std::string& text) {
  double value = 0.0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Where a header's columns are.
using Columns = std::unordered_map<std::string, std::size_t>;

Columns columns_of(const std::vector<std::string>& header) {
  Columns columns;
  for (std::size_t i = 0; i < header.size(); ++i) columns.try_emplace(header[i], i);
  return columns;
}

/// The fields of a record by column name; one that isn't there is empty.
class Row {
 public:
  Row(const Columns& columns, const std::vector<std::string>& fields) : columns_(columns), fields_(fields) {}

  const std::string& operator[](const std::string& column) const {
    static const std::string nothing;
    const auto found = columns_.find(column);
    return found != columns_.end() && found->second < fields_.size() ? fields_[found->second] : nothing;
  }

 private:
  const Columns& columns_;
  const std::vector<std::string>& fields_;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
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

/// \throws ConfigError naming the line where a row has other columns than the header, or no time
void check_row(const CsvRecord& record, std::size_t fields, const Row& row, std::string_view origin) {
  if (record.fields.size() != fields) {
    fail_at(origin, record.line,
            "has " + std::to_string(record.fields.size()) + " fields, not " + std::to_string(fields));
  }
  const std::string& text = row["seconds"];
  if (text.empty() && row["status"] != "done") return;
  const double seconds = number(text).value_or(0.0);
  if (!(seconds > 0 && seconds < 1e9)) fail_at(origin, record.line, "has no time");
}

// Far above what sweeps have: a page shows each combination, with the settings that vary.
constexpr std::size_t most_settings = 256;
constexpr std::size_t most_points = 20'000;
constexpr std::size_t most_values = 500'000;  // of all points
constexpr std::size_t longest_swept = 65'536;

/// A sweep's rows, one at a time: a file may be far larger than what a sweep wrote.
class SweepRows {
 public:
  /// \throws ConfigError where the header isn't a sweep's
  SweepRows(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {
    CsvReader reader(text_, std::string(origin_));
    std::optional<CsvRecord> first = reader.next();
    if (!first) throw ConfigError(std::string(origin_) + ": is empty; expected a sweep's runs");
    header_ = std::move(first->fields);
    columns_ = columns_of(header_);
    std::ranges::copy_if(header_, std::back_inserter(settings_),
                         [](const std::string& column) { return column.find('.') != std::string::npos; });
    if (settings_.empty() || !columns_.contains("seconds")) {
      throw ConfigError(std::string(origin_) + ": isn't a sweep's: expected columns named after settings, and seconds");
    }
    if (settings_.size() > most_settings) {
      throw ConfigError(std::string(origin_) + ": isn't a sweep's: has more than " + std::to_string(most_settings) +
                        " columns named after settings");
    }
  }

  /// Columns that are named after settings.
  const std::vector<std::string>& settings() const noexcept { return settings_; }

  /// Calls `visit` for each row. \throws ConfigError naming the line of one that isn't a sweep's
  template <class Visit>
  void for_each(const Visit& visit) const {
    // A sweep repeats each of its combinations a few times.
    constexpr std::size_t most_rows = 1'000'000;
    CsvReader reader(text_, std::string(origin_));
    reader.next();
    std::size_t rows = 0;
    for (std::optional<CsvRecord> record = reader.next(); record;) {
      std::optional<CsvRecord> following = reader.next();
      if (!following && is_cut(*record)) return;
      const Row row(columns_, record->fields);
      check_row(*record, header_.size(), row, origin_);
      if (row["swept"].size() > longest_swept) fail_at(origin_, record->line, "swept names more than a sweep can vary");
      if (++rows > most_rows) {
        fail_at(origin_, record->line, "more than " + std::to_string(most_rows) + " runs, which no sweep has");
      }
      visit(row);
      record = std::move(following);
    }
  }

 private:
  /// A last row may be cut off while the sweep writes it, or where it was killed.
  bool is_cut(const CsvRecord& last) const {
    constexpr std::size_t longest_row = 65536;
    const std::size_t length = text_.size() - (text_.rfind('\n') + 1);
    return length > 0 && length < longest_row && last.fields.size() < header_.size();
  }

  std::string_view text_;
  std::string_view origin_;
  std::vector<std::string> header_;
  Columns columns_;
  std::vector<std::string> settings_;
};

/// The keys that `swept` names in any row, else the columns named after settings that vary, else all of those.
std::vector<std::string> keys_of(const SweepRows& rows) {
  const std::vector<std::string>& all = rows.settings();
  std::set<std::string> swept;
  std::vector<std::string> first;
  std::vector<bool> varies(all.size(), false);
  rows.for_each([&](const Row& row) {
    for (std::string& word : words(row["swept"])) {
      if (std::ranges::find(all, word) != all.end()) swept.insert(std::move(word));
    }
    if (first.empty()) {
      for (const std::string& key : all) first.push_back(row[key]);
    }
    for (std::size_t i = 0; i < all.size(); ++i) varies[i] = varies[i] || row[all[i]] != first[i];
  });
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (swept.empty() ? varies[i] : swept.contains(all[i])) keys.push_back(all[i]);
  }
  return keys.empty() ? all : keys;
}

}  // namespace

double SweepPoint::median() const { return summarise(seconds).median; }

SweepTable read_sweep(std::string_view whole, std::string_view origin) {
  const std::string_view text = without_bom(whole);
  check_text(text, origin);
  const SweepRows rows(text, origin);
  SweepTable table;
  table.keys = keys_of(rows);
  std::map<std::vector<std::string>, std::size_t> places;
  rows.for_each([&](const Row& row) {
    std::vector<std::string> values;
    for (const std::string& key : table.keys) values.push_back(row[key]);
    const auto [place, is_new] = places.try_emplace(values, table.points.size());
    if (is_new) table.points.push_back({.values = values, .seconds = {}, .again = {}, .note = {}});
    if (table.points.size() > std::min(most_points, most_values / table.keys.size())) {
      throw ConfigError(std::string(origin) + ": has more combinations than a sweep: " +
                        std::to_string(table.points.size()) + " of " + std::to_string(table.keys.size()) + " settings");
    }
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
  });
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
