#include "cli/folder_guard.hpp"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <memory>
#include <slidestream/error.hpp>
#include <system_error>
#include <utility>

#include "cli/own_files.hpp"
#include "cli/own_marks.hpp"
#include "config/suggest.hpp"
#include "ledger/artifact_files.hpp"
#include "ledger/database.hpp"
#include "ledger/ledger.hpp"
#include "ledger/map_files.hpp"
#include "ledger/schema.hpp"
#include "ledger/start_notes.hpp"
#include "sink/deep_zoom.hpp"
#include "sink/file_digest.hpp"
#include "sink/file_marks.hpp"
#include "sink/partial_folder.hpp"
#include "sink/view_page.hpp"

namespace slidestream::cli {

namespace fs = std::filesystem;

namespace {

/// Whether a file or folder is what the ledger lists, or has nothing to lose. It is read only where its size is right.
/// \param is_folder  whether the ledger lists a folder
bool is_as_made(const fs::path& path, bool is_folder, const Artifact& made) {
  const fs::file_type type = type_at(path);
  if (is_folder != (type == fs::file_type::directory)) return false;
  // Empty folders and links count for no digest, and who writes refuses those that no image has.
  if (is_folder && !may_be_image_folder(path)) return false;
  if (is_folder ? !is_lost_with(path) : is_empty_file(path)) return true;
  if (path_bytes(path) != made.bytes) return false;
  const std::optional<PathContent> content = path_content(path);
  return content && content->digest == made.digest;
}

/// \throws ConfigError as `check_visible`
bool is_there(const fs::path& path) {
  std::error_code code;
  const bool found = fs::exists(path, code);
  check_visible<ConfigError>(path, code);
  return found;
}

}  // namespace

FolderGuard::FolderGuard(const Config& config, bool overwrite, bool begins_anew)
    : config_(config),
      folder_(config.output.dir),
      overwrite_(overwrite),
      begins_anew_(begins_anew),
      moves_maps_(begins_anew && Ledger::has_results(config)),
      had_ledger_(is_there(folder_ / ledger_name)),
      is_ours_(!begins_anew && had_ledger_) {
  if (!is_ours_ || overwrite_) return;
  try {
    const std::unique_ptr<Database> database = open_to_read(folder_ / ledger_name);
    Statement files(*database, "SELECT file, bytes, digest FROM artifacts");
    while (files.step()) {
      const Artifact artifact = {"", "", files.text(0), static_cast<std::uint64_t>(files.integer(1)),
                                 static_cast<std::uint64_t>(files.integer(2))};
      made_.emplace((folder_ / artifact.file).string(), artifact);
    }
    Statement maps(*database, "SELECT map_name, map_columns, map_rows FROM slides WHERE map_name IS NOT NULL");
    while (maps.step()) {
      WindowMap map;
      map.columns = maps.integer(1);
      map.rows = maps.integer(2);
      maps_.emplace((folder_ / map_path(maps.text(0))).string(), std::move(map));
    }
    const std::unordered_set<std::int64_t> with_files = slides_with_files(*database);
    const bool has_lost_notes = may_have_lost_notes(*database);
    // One that was done may have lost what the ledger listed of it. One that failed has no files, and keeps the cause
    // while it is tried again.
    Statement slides(*database,
                     "SELECT id, image_name, state <> 'failed' AND coalesce(length(cause), 0) = 0, attempts > 0 AND "
                     "ended_at IS NOT NULL, attempts > 0 FROM slides WHERE image_name IS NOT NULL");
    while (slides.step()) {
      if (slides.integer(4) != 0 || has_lost_notes) tried_.insert(slides.text(1));
      const bool may_be = slides.integer(2) != 0 && (has_lost_notes || slides.integer(3) != 0);
      slides_.emplace(slides.text(1), may_be || with_files.contains(slides.integer(0)));
    }
    // Of a process that died before it entered them.
    for (const std::int64_t id : notes_to_enter(*database)) {
      Statement of(*database, "SELECT image_name FROM slides WHERE id = abs(?1) AND image_name IS NOT NULL");
      if (of.bind(1, id).step()) tried_.insert(of.text(0));
    }
  } catch (const Error&) {
    // Who begins the run says what is wrong with the ledger.
  }
}

void FolderGuard::check_names(const Config& config, const std::vector<std::string>& maps) const {
  // Of an earlier run that lost its ledger the files are this program's, and that is what is to be told.
  if (!begins_anew_) Ledger::check_folder(config);
  const fs::path progress = folder_ / "progress.json";
  check_progress_target(progress, overwrite_ || (is_ours_ && is_link(progress)));
  if (is_ours_) return;
  if (moves_maps_) return;
  check_map_places(folder_, maps);
  if (overwrite_) return;
  for (const std::string& map : maps) {
    const fs::path file = folder_ / "maps" / map;
    check_target(file, false);
    if (is_there(file) && !is_empty_file(file)) throw ConfigError(unlisted(file));
  }
}

void FolderGuard::check_file(const fs::path& file) const {
  std::error_code code;
  const NamedKind kind = named_kind(file);
  const fs::path filled = kind.is_deep_zoom ? deep_zoom_tiles(file) : file;
  if (overwrite_) {
    // Who fills a folder takes none that is a link.
    if ((kind.is_folder || kind.is_deep_zoom) && is_link(filled)) fs::remove(filled, code);
    return;
  }
  check_visible<SlideError>(file);
  for (const fs::path& name : {file, filled}) {
    if (is_link(name)) throw SlideError(refusal(name));
  }
  if (kind.is_deep_zoom) check_page(deep_zoom_page(file));
  if (kind.is_deep_zoom) spare_changed(deep_zoom_tiles(file), true, file);
  if (spare_changed(file, kind.is_folder, file)) return;
  // Who writes refuses what is of another kind, and folders with other files.
  const bool is_alike = kind.is_folder ? holds_image(file) : fs::is_regular_file(file, code);
  if (!is_alike) return check_folder(file);
  if (is_empty_file(file)) return check_folder(file);
  const bool own = is_own(file);
  // A slide that a network failed on leaves its table of absent tiles.
  if (own ? may_be_left(file) || (kind.is_table && had_ledger_) : !kind.always_says_so && may_be_left(file)) return;
  throw SlideError(own ? unlisted(file) : refusal(file));
}

void FolderGuard::check_folder(const fs::path& file) const {
  const NamedKind kind = named_kind(file);
  if (!kind.is_deep_zoom && !kind.is_folder) return;
  const fs::path folder = kind.is_deep_zoom ? deep_zoom_tiles(file) : file;
  if (made_.contains(file.string()) || made_.contains(folder.string()) || may_be_left(file)) return;
  if (is_lost_with(folder)) throw SlideError(is_own(file) ? unlisted(folder) : refusal(folder));
}

bool FolderGuard::spare_changed(const fs::path& path, bool is_folder, const fs::path& image) const {
  const auto made = made_.find(path.string());
  if (made == made_.end()) return false;
  const fs::file_type type = type_at(path);
  const bool can_move = type == fs::file_type::regular || type == fs::file_type::directory;
  if (can_move && !is_as_made(path, is_folder, made->second)) spare(path, image);
  return true;
}

/// Somebody may have put another file under the name, or changed ours.
void FolderGuard::spare(const fs::path& file, const fs::path& image) const {
  const SetAside aside = set_aside(folder_, {file.lexically_relative(folder_).string()});
  if (aside.folder.empty()) {
    // A link leads out of the folder, where nothing moves. What says that it is this program's is replaced.
    if (aside.refusal.empty() && is_own(image)) return;
    throw SlideError(aside.refusal.empty() ? refusal(file) : aside.refusal);
  }
  spdlog::warn("{}: isn't the one that the ledger lists: moved to {}", one_line(file.string()),
               one_line(aside.folder.string()));
}

void FolderGuard::check_map(const fs::path& file) const {
  std::error_code code;
  if (overwrite_ || file.empty()) return;
  if (const auto map = maps_.find(file.string()); map != maps_.end()) {
    if (is_foreign_map(config_, map->second, file)) spare(file, file);
    return;
  }
  check_visible<SlideError>(file);
  if (type_at(file) == fs::file_type::not_found) return;
  if (is_link(file)) throw SlideError(refusal(file));
  // The ledger has a map before the map has a file. A row that is damaged may have lost the name.
  if (is_empty_file(file) || may_be_left(file) || !fs::is_regular_file(file, code)) return;
  throw SlideError(is_own(file) ? unlisted(file) : refusal(file));
}

std::string FolderGuard::unlisted(const fs::path& file) const {
  return one_line(file.string()) + ": is there already, and " +
         (had_ledger_ ? "the ledger doesn't list it" : "the folder had no ledger that lists it") + offer_to_overwrite;
}

/// The slide is NAME, where the file is NAME.SUFFIX. Names may have dots: the longest counts.
std::optional<std::string> FolderGuard::slide_of(const fs::path& file) const {
  std::string name = file.filename().string();
  for (std::size_t dot = name.rfind('.'); dot != std::string::npos; dot = name.rfind('.')) {
    name.resize(dot);
    if (slides_.contains(name)) return name;
  }
  return std::nullopt;
}

bool FolderGuard::may_be_left(const fs::path& file) const {
  const std::optional<std::string> slide = slide_of(file);
  return slide && slides_.at(*slide);
}

void FolderGuard::check_page(const fs::path& page) const {
  if (!is_link(page) && spare_changed(page, false, page)) return;
  const bool is_file = type_at(page) == fs::file_type::regular;
  const bool is_foreign = is_file && !is_view_page(page);
  if (is_link(page) || is_foreign) throw SlideError(refusal(page));
}

void FolderGuard::check_partial(const fs::path& partial) const {
  if (overwrite_) return;
  check_visible<SlideError>(partial);
  if (const auto foreign = foreign_partial(partial)) throw SlideError(refusal(*foreign));
  const std::optional<std::string> slide = slide_of(partial);
  if ((slide && tried_.contains(*slide)) || !is_begun(partial)) return;
  spdlog::warn("{}: another run of this program began it: it is replaced, unless that still writes it",
               one_line(partial.string()));
}

}  // namespace slidestream::cli
