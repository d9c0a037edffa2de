#include "cli/own_files.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <slidestream/error.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/tiff_description.hpp"
#include "config/suggest.hpp"
#include "ledger/artifact_files.hpp"
#include "ledger/database.hpp"
#include "ledger/ledger.hpp"
#include "ledger/map_files.hpp"
#include "ledger/schema.hpp"
#include "ledger/start_notes.hpp"
#include "output/views.hpp"
#include "sink/deep_zoom.hpp"
#include "sink/feature_file.hpp"
#include "sink/file_digest.hpp"
#include "sink/partial_folder.hpp"
#include "sink/stray_files.hpp"
#include "sink/view_page.hpp"
#include "system/there.hpp"
#include "volume/nifti_file.hpp"

namespace slidestream::cli {

namespace {

namespace fs = std::filesystem;

std::string small_letters(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

/// The first bytes of a file; fewer where it ends or can't be read.
std::string first_bytes(const fs::path& file, std::size_t most) {
  std::error_code code;
  // Opening a FIFO would wait for its other end.
  if (!fs::is_regular_file(file, code)) return {};
  std::ifstream in(file, std::ios::binary);
  std::string bytes(most, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return bytes;
}

constexpr std::string_view image_mark = "Creator=\"slidestream ";

bool is_own_tiff(const fs::path& file) {
  const std::string text = tiff_description(file);
  return text.find(image_mark) != std::string::npos || text.find("Title = slidestream synth") != std::string::npos ||
         text.starts_with("mean and standard deviation of every window");
}

bool is_own_page(const fs::path& file) {
  constexpr std::size_t head = 4096;
  return first_bytes(file, head).find("<title>slidestream report</title>") != std::string::npos || is_view_page(file);
}

bool is_own_deep_zoom(const fs::path& file) {
  const fs::path page = deep_zoom_page(file);
  std::error_code code;
  return (fs::exists(page, code) && is_view_page(page)) || has_all_names_but_the_page(file);
}

bool is_own_json(const fs::path& file) {
  constexpr std::size_t head = 4096;
  const std::string text = first_bytes(file, head);
  return text.starts_with(R"({"displayTimeUnit":"ms","otherData":{"dropped_ranges":)") ||
         text.find("\"slidestream\":") != std::string::npos || text.find("\"pid_space\":") != std::string::npos;
}

bool is_own_table(const fs::path& file) {
  constexpr std::size_t head = 256;
  const std::string text = first_bytes(file, head);
  constexpr std::array<std::string_view, 6> headers = {labels_header,
                                                       "path,status,error,",
                                                       "path,stage,tile,cause",
                                                       "path,operator,product,file,",
                                                       "date,version,host,processor,",
                                                       "tile,column,row,x,y,width,height,cause"};
  return std::ranges::any_of(headers, [&text](std::string_view header) { return text.starts_with(header); });
}

bool is_own_features(const fs::path& file) { return first_bytes(file, 4) == "\x89HDF" && is_features_file(file); }

bool is_empty_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code) && fs::file_size(path, code) == 0;
}

bool holds(const fs::path& file, std::string_view mark) {
  constexpr std::size_t most = std::size_t{1} << 20;
  return first_bytes(file, most).find(mark) != std::string::npos;
}

constexpr std::string_view zarr_mark = "\"slidestream\":";

/// How many DICOM files with something in them a folder has; nothing where one isn't this program's.
std::optional<std::size_t> own_instances(const fs::path& folder) {
  std::size_t instances = 0;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator(); entry.increment(code)) {
    if (entry->path().extension() != ".dcm" || is_stray_file(*entry) || is_empty_file(entry->path())) continue;
    if (!holds(entry->path(), "slidestream")) return std::nullopt;
    ++instances;
  }
  return instances;
}

/// Of DICOM each instance says it.
bool is_own_folder(const fs::path& folder) {
  if (holds(folder / ".zattrs", zarr_mark) || holds(folder / "zarr.json", zarr_mark)) return true;
  return own_instances(folder).value_or(0) > 0;
}

/// Whether a folder is an image of the kinds that are folders, whoever made it.
bool holds_image(const fs::path& folder) {
  std::error_code code;
  return std::ranges::any_of(std::array{".zattrs", ".zgroup", "zarr.json", "level-0.dcm"},
                             [&](const char* name) { return fs::is_regular_file(folder / name, code); });
}

struct Kind {
  std::string_view suffix;
  bool (*is_own)(const fs::path&);
  bool always_says_so = false;  ///< false: a file may be this program's and not say it
};

/// The head of a compressed volume says it.
bool is_own_volume(const fs::path& file) {
  constexpr std::size_t head = 64;
  return first_bytes(file, head).find(volume::written_mark) != std::string::npos;
}

bool is_own_metrics(const fs::path& file) { return holds(file, "slidestream_"); }
bool is_own_settings(const fs::path& file) { return holds(file, "# The fastest of "); }

constexpr std::array<Kind, 15> kinds = {{{".tif", is_own_tiff, true},
                                         {".tiff", is_own_tiff, true},
                                         {".btf", is_own_tiff, true},
                                         {".svs", is_own_tiff, true},
                                         {".nii.gz", is_own_volume, true},
                                         {".html", is_own_page},
                                         {".htm", is_own_page},
                                         {".dzi", is_own_deep_zoom},
                                         {".json", is_own_json},
                                         {".csv", is_own_table, true},
                                         {".h5", is_own_features, true},
                                         {".prom", is_own_metrics},
                                         {".toml", is_own_settings},
                                         {".zarr", is_own_folder, true},
                                         {".dicom", is_own_folder, true}}};

const Kind* kind_of(const fs::path& path) {
  const std::string name = small_letters(path.filename().string());
  const auto* found = std::ranges::find_if(kinds, [&name](const Kind& kind) { return name.ends_with(kind.suffix); });
  return found == kinds.end() ? nullptr : &*found;
}

/// What lies there itself, be it a link; not_found also where that can't be said.
fs::file_type type_of(const fs::path& path) {
  std::error_code code;
  const fs::file_type type = fs::symlink_status(path, code).type();
  return type == fs::file_type::none ? fs::file_type::not_found : type;
}

/// Whether a folder has a file that isn't empty, at any depth. Stray files and what was begun of a file don't count.
bool has_content(const fs::path& folder) {
  std::error_code code;
  fs::recursive_directory_iterator entry(folder, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    const fs::file_type type = type_of(entry->path());
    if (type == fs::file_type::directory || is_stray_file(*entry)) continue;
    if (type == fs::file_type::regular && is_empty_file(entry->path())) continue;
    if (entry.depth() == 0 && entry->path().filename().string().starts_with(unfinished_begin)) continue;
    return true;
  }
  return false;
}

/// Whether something is lost with a folder that has no mark. Who writes refuses what no image's folder holds.
bool is_lost_with(const fs::path& folder) {
  return type_of(folder) == fs::file_type::directory && has_content(folder) && may_be_image_folder(folder);
}

/// A folder that isn't whole: the attributes come first, and of DICOM each instance has the mark.
bool is_own_partial_folder(const fs::path& folder) {
  for (const char* attributes : {".zattrs", "zarr.json"}) {
    const fs::path file = folder / attributes;
    if (type_of(file) != fs::file_type::not_found) return is_empty_file(file) || holds(file, zarr_mark);
  }
  const std::optional<std::size_t> instances = own_instances(folder);
  return instances && (*instances > 0 || !is_lost_with(folder));
}

/// Whether a folder has files or folders besides those whose names begin with a dot.
bool has_tiles(const fs::path& folder) {
  std::error_code code;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator(); entry.increment(code)) {
    if (!entry->path().filename().string().starts_with('.') && !is_stray_file(*entry)) return true;
  }
  return false;
}

/// Of an image that isn't whole, what is another program's. Whatever there is of a Deep Zoom image, its page is there.
std::optional<fs::path> foreign_part_of_deep_zoom(const fs::path& file) {
  const fs::path page = deep_zoom_page(file);
  if (type_of(page) != fs::file_type::not_found) return is_view_page(page) ? std::nullopt : std::optional(page);
  if (type_of(file) != fs::file_type::not_found && !is_empty_file(file)) return file;
  const fs::path tiles = deep_zoom_tiles(file);
  return has_tiles(tiles) ? std::optional(tiles) : std::nullopt;
}

/// What isn't of this program under the name that an image has while it is written. Those have their mark from the
/// first byte on (`PartialFile`), or are empty. Who writes refuses folders in the place of files, and the other way
/// round.
std::optional<fs::path> foreign_partial(const fs::path& partial) {
  const Kind* const kind = kind_of(partial);
  if (kind != nullptr && kind->is_own == is_own_deep_zoom) return foreign_part_of_deep_zoom(partial);
  const bool is_folder = kind == nullptr || kind->is_own == is_own_folder;
  const fs::file_type type = type_of(partial);
  bool is_own = type == fs::file_type::not_found || is_folder != (type == fs::file_type::directory);
  if (type == fs::file_type::directory) is_own = is_own || is_own_partial_folder(partial);
  if (type == fs::file_type::regular) {
    is_own = is_own || is_empty_file(partial) || tiff_description(partial).find(image_mark) != std::string::npos;
  }
  return is_own ? std::nullopt : std::optional(partial);
}

/// Whether a file or folder is what the ledger lists, or has nothing to lose. It is read only where its size is right.
/// \param is_folder  whether the ledger lists a folder
bool is_as_made(const fs::path& path, bool is_folder, const Artifact& made) {
  const fs::file_type type = type_of(path);
  if (is_folder != (type == fs::file_type::directory)) return false;
  // Empty folders and links count for no digest, and who writes refuses those that no image has.
  if (is_folder && !may_be_image_folder(path)) return false;
  if (is_folder ? !has_content(path) : is_empty_file(path)) return true;
  if (path_bytes(path) != made.bytes) return false;
  const std::optional<PathContent> content = path_content(path);
  return content && content->digest == made.digest;
}

bool is_link(const fs::path& path) { return type_of(path) == fs::file_type::symlink; }

std::string refusal(const fs::path& path) {
  const bool leads_on = is_link(path);
  return one_line(path.string()) +
         (leads_on ? ": is a link, and this program writes none"
                   : ": is there already, and this program didn't write it") +
         offer_to_overwrite + (leads_on ? ", not what it leads to" : "");
}

/// \throws Fault where storage doesn't say what has the name: it isn't taken for absent, and replaced. Where rights are
/// missing nothing can be replaced, and who writes says so.
template <class Fault>
void check_visible(const fs::path& path, const std::error_code& code) {
  if (!code || says_absent(code) || code == std::errc::permission_denied) return;
  throw Fault(one_line(path.string()) + ": can't be looked at: " + code.message());
}

template <class Fault>
void check_visible(const fs::path& path) {
  std::error_code code;
  [[maybe_unused]] const fs::file_status status = fs::symlink_status(path, code);
  check_visible<Fault>(path, code);
}

/// \throws ConfigError as `check_visible`
bool is_there(const fs::path& path) {
  std::error_code code;
  const bool found = fs::exists(path, code);
  check_visible<ConfigError>(path, code);
  return found;
}

/// Whether a name that an image has while it is written has more of one than an empty file or folder.
bool is_begun(const fs::path& partial) {
  const Kind* const kind = kind_of(partial);
  std::vector<fs::path> parts = {partial};
  if (kind != nullptr && kind->is_own == is_own_deep_zoom) {
    parts.push_back(deep_zoom_page(partial));
    parts.push_back(deep_zoom_tiles(partial));
  }
  return std::ranges::any_of(parts, [](const fs::path& part) {
    const fs::file_type type = type_of(part);
    return (type == fs::file_type::regular && !is_empty_file(part)) ||
           (type == fs::file_type::directory && has_content(part));
  });
}

}  // namespace

bool is_own(const fs::path& path) {
  if (is_empty_file(path)) return true;
  const Kind* const kind = kind_of(path);
  std::error_code code;
  if (fs::is_directory(path, code)) return is_own_folder(path);
  return kind != nullptr && kind->is_own(path);
}

void check_target(const fs::path& path, bool overwrite) {
  if (overwrite) return;
  check_visible<ConfigError>(path);
  const fs::file_type type = type_of(path);
  // What is neither a file nor absent is refused by who writes.
  const bool is_foreign = is_link(path) || (type == fs::file_type::regular && !is_own(path));
  if (is_foreign) throw ConfigError(refusal(path));
}

void check_partial_target(const fs::path& partial, bool overwrite) {
  if (overwrite) return;
  check_visible<ConfigError>(partial);
  if (const auto foreign = foreign_partial(partial)) throw ConfigError(refusal(*foreign));
}

void check_folder_target(const fs::path& path, bool overwrite) {
  std::error_code code;
  const bool is_folder = type_of(path) == fs::file_type::directory && !fs::is_empty(path, code);
  if (overwrite || !is_folder) return check_target(path, overwrite);
  if (!is_own(path)) throw ConfigError(refusal(path));
}

void check_progress_target(const fs::path& path, bool overwrite) {
  check_target(path, overwrite);
  const fs::file_type type = type_of(path);
  constexpr std::array usable = {fs::file_type::not_found, fs::file_type::regular, fs::file_type::symlink,
                                 fs::file_type::directory};
  if (std::ranges::find(usable, type) == usable.end()) {
    throw ConfigError(one_line(path.string()) + ": isn't a regular file");
  }
}

void check_map_places(const fs::path& folder, const std::vector<std::string>& maps) {
  for (const std::string& map : maps) {
    const fs::path file = folder / "maps" / map;
    std::error_code code;
    if (type_of(file) == fs::file_type::directory) {
      throw ConfigError(one_line(file.string()) + ": " + std::make_error_code(std::errc::is_a_directory).message());
    }
    // A link to a folder is replaced, if links may be. One to a pipe or a device is no regular file for who writes.
    const fs::file_status there = fs::status(file, code);
    if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there)) {
      throw ConfigError(one_line(file.string()) + ": isn't a regular file");
    }
  }
}

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
  if (overwrite_) return;
  check_visible<SlideError>(file);
  if (is_link(file)) throw SlideError(refusal(file));
  const Kind* const kind = kind_of(file);
  const bool is_deep_zoom = kind != nullptr && kind->is_own == is_own_deep_zoom;
  if (is_deep_zoom) check_page(deep_zoom_page(file));
  if (is_deep_zoom) spare_changed(deep_zoom_tiles(file), true, file);
  const bool is_folder = kind != nullptr && kind->is_own == is_own_folder;
  if (spare_changed(file, is_folder, file)) return;
  // Who writes refuses what is of another kind, and folders with other files.
  const bool is_alike = is_folder ? holds_image(file) : fs::is_regular_file(file, code);
  if (!is_alike) return check_folder(file);
  const bool says_so = kind != nullptr && kind->always_says_so;
  if (is_empty_file(file)) return check_folder(file);
  const bool own = is_own(file);
  // A slide that a network failed on leaves its table of absent tiles.
  const bool is_table = kind != nullptr && kind->is_own == is_own_table;
  if (own ? may_be_left(file) || (is_table && had_ledger_) : !says_so && may_be_left(file)) return;
  throw SlideError(own ? unlisted(file) : refusal(file));
}

void FolderGuard::check_folder(const fs::path& file) const {
  const Kind* const kind = kind_of(file);
  const bool is_deep_zoom = kind != nullptr && kind->is_own == is_own_deep_zoom;
  const bool is_folder = kind != nullptr && kind->is_own == is_own_folder;
  if (!is_deep_zoom && !is_folder) return;
  const fs::path folder = is_deep_zoom ? deep_zoom_tiles(file) : file;
  if (made_.contains(file.string()) || made_.contains(folder.string()) || may_be_left(file)) return;
  if (is_lost_with(folder)) throw SlideError(is_own(file) ? unlisted(folder) : refusal(folder));
}

bool FolderGuard::spare_changed(const fs::path& path, bool is_folder, const fs::path& image) const {
  const auto made = made_.find(path.string());
  if (made == made_.end()) return false;
  const fs::file_type type = type_of(path);
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
  spdlog::warn("{}: isn't what this program wrote: moved to {}", one_line(file.string()),
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
  if (type_of(file) == fs::file_type::not_found) return;
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
  const bool is_file = type_of(page) == fs::file_type::regular;
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
