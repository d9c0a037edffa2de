#include "cli/listed_files.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/own_marks.hpp"
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

/// What a file is in, without links.
fs::path folder_of(const fs::path& file) {
  std::error_code code;
  return fs::weakly_canonical(fs::absolute(file, code).parent_path(), code);
}

/// The first of these, files or folders, that the ledger in the folder lists.
std::optional<fs::path> first_listed(const std::vector<fs::path>& files, const fs::path& folder) {
  const std::unique_ptr<Database> database = open_to_read(folder / ledger_name);
  Statement listed(
      *database,
      "SELECT file FROM artifacts UNION ALL SELECT 'maps/' || map_name FROM slides WHERE map_name IS NOT NULL");
  while (listed.step()) {
    const fs::path name = listed.text(0);
    for (const fs::path& file : files) {
      std::error_code code;
      if (name.filename() != file.filename()) continue;
      if (fs::equivalent(place_of(folder, name.string()), file, code)) return file;
    }
  }
  return std::nullopt;
}

std::optional<fs::path> first_listed_readably(const std::vector<fs::path>& files, const fs::path& folder) {
  try {
    return first_listed(files, folder);
  } catch (const Error&) {
    return std::nullopt;
  }
}

[[noreturn]] void refuse_listed(const fs::path& file, const fs::path& listed, const fs::path& folder) {
  throw ConfigError(one_line(file.string()) +
                    (listed == file ? ": is a file of a slide that "
                                    : ": lies in " + one_line(listed.string()) + ", a folder of a slide that ") +
                    one_line(folder.string()) + " lists; name another");
}

/// Whether a folder is an image that this program made, or holds the tiles of one.
bool is_image_folder(const fs::path& folder) {
  constexpr std::string_view tiles = "_files";
  if (holds_own_image(folder)) return true;
  const std::string name = folder.filename().string();
  if (!name.ends_with(tiles)) return false;
  return is_own(folder.parent_path() / (name.substr(0, name.size() - tiles.size()) + ".dzi"));
}

}  // namespace

void check_unlisted(const fs::path& file, const fs::path& folder) {
  if (has_entry(file) && has_run(folder) && first_listed({file}, folder)) refuse_listed(file, file, folder);
}

void check_unlisted_above(const fs::path& file) {
  const fs::path parent = folder_of(file);
  if (has_entry(file) && has_run(parent)) {
    std::vector<std::string> names = files_of_runs();
    names.emplace_back("progress.json");
    if (std::ranges::find(names, file.filename().string()) != names.end()) {
      throw ConfigError(one_line(file.string()) + ": is a file of the run in " + one_line(parent.string()) +
                        "; name another");
    }
  }
  std::vector<fs::path> within;
  if (has_entry(file)) within.push_back(file);
  for (fs::path folder = parent; folder.has_relative_path(); folder = folder.parent_path()) {
    if (!within.empty() && has_run(folder)) {
      if (const auto listed = first_listed_readably(within, folder)) refuse_listed(file, *listed, folder);
    }
    if (has_entry(folder)) within.push_back(folder);
  }
  check_outside_images(file);
}

void check_outside_images(const fs::path& file) {
  for (fs::path folder = folder_of(file); folder.has_relative_path(); folder = folder.parent_path()) {
    if (!is_image_folder(folder)) continue;
    throw ConfigError(one_line(file.string()) + ": lies in " + one_line(folder.string()) +
                      ", an image of this program; name another");
  }
}

}  // namespace slidestream::cli
