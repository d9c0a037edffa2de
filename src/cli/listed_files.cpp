#include "cli/listed_files.hpp"

#include <algorithm>
#include <memory>
#include <slidestream/error.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "config/suggest.hpp"
#include "ledger/artifact_files.hpp"
#include "ledger/database.hpp"
#include "ledger/ledger.hpp"
#include "ledger/schema.hpp"

namespace slidestream::cli {

namespace fs = std::filesystem;

namespace {

bool has_run(const fs::path& folder) {
  std::error_code code;
  return fs::exists(folder / ledger_name, code);
}

bool has_entry(const fs::path& file) {
  std::error_code code;
  return fs::exists(fs::symlink_status(file, code));
}

bool is_listed(const fs::path& file, const fs::path& folder) {
  const std::unique_ptr<Database> database = open_to_read(folder / ledger_name);
  Statement files(
      *database,
      "SELECT file FROM artifacts UNION ALL SELECT 'maps/' || map_name FROM slides WHERE map_name IS NOT NULL");
  while (files.step()) {
    const std::string listed = files.text(0);
    std::error_code code;
    if (fs::path(listed).filename() != file.filename()) continue;
    if (fs::equivalent(place_of(folder, listed), file, code)) return true;
  }
  return false;
}

bool is_listed_readably(const fs::path& file, const fs::path& folder) {
  try {
    return is_listed(file, folder);
  } catch (const Error&) {
    return false;
  }
}

[[noreturn]] void refuse_listed(const fs::path& file, const fs::path& folder) {
  throw ConfigError(one_line(file.string()) + ": is a file of a slide that " + one_line(folder.string()) +
                    " lists; name another");
}

}  // namespace

void check_unlisted(const fs::path& file, const fs::path& folder) {
  if (has_entry(file) && has_run(folder) && is_listed(file, folder)) refuse_listed(file, folder);
}

void check_unlisted_above(const fs::path& file) {
  if (!has_entry(file)) return;
  std::error_code code;
  const fs::path parent = fs::weakly_canonical(fs::absolute(file, code).parent_path(), code);
  if (has_run(parent)) {
    std::vector<std::string> names = files_of_runs();
    names.emplace_back("progress.json");
    if (std::ranges::find(names, file.filename().string()) != names.end()) {
      throw ConfigError(one_line(file.string()) + ": is a file of the run in " + one_line(parent.string()) +
                        "; name another");
    }
  }
  for (fs::path folder = parent; folder.has_relative_path(); folder = folder.parent_path()) {
    if (has_run(folder) && is_listed_readably(file, folder)) refuse_listed(file, folder);
  }
}

}  // namespace slidestream::cli
