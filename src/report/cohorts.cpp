#include "report/cohorts.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <slidestream/error.hpp>
#include <system_error>

#include "config/csv.hpp"
#include "config/manifest.hpp"
#include "config/suggest.hpp"
#include "report/text_file.hpp"

namespace slidestream::report {

Cohorts::Cohorts(const std::string& manifest, const std::string& column) {
  namespace fs = std::filesystem;
  const std::string text = read_text_file(manifest, FileOrigin::given);
  CsvReader reader = list_reader(text, manifest);
  const std::optional<CsvRecord> first = reader.next();
  if (!first) throw ConfigError(manifest + ": is empty; expected a header with the column " + one_line(column));
  const std::vector<std::string>& header = first->fields;
  const auto wanted = find_column(header, column);
  if (!wanted) {
    throw ConfigError(manifest + ": has no column '" + one_line(column) + "'" + did_you_mean(column, header));
  }
  const auto slides = slide_column(header);
  for (const auto& each : {wanted, slides}) {
    if (each) require_only(header, *each, manifest);
  }
  const std::size_t path_at = slides.value_or(0);
  const std::size_t cohort_at = *wanted;
  const std::size_t columns = named_columns(header);
  while (const std::optional<CsvRecord> record = reader.next()) {
    require_no_surplus(columns, *record, manifest);
    const std::vector<std::string>& fields = record->fields;
    if (path_at >= fields.size() || cohort_at >= fields.size() || fields[path_at].empty()) continue;
    const fs::path file = fs::path(manifest).parent_path() / fields[path_at];
    std::error_code code;
    const fs::path canonical = fs::weakly_canonical(file, code);
    by_canonical_.try_emplace((code ? fs::absolute(file, code).lexically_normal() : canonical).string(),
                              fields[cohort_at]);
  }
}

std::string Cohorts::of(const std::string& canonical) const {
  const auto found = by_canonical_.find(canonical);
  return found == by_canonical_.end() ? std::string() : found->second;
}

}  // namespace slidestream::report
