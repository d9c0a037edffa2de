#include "ledger/artifact_files.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <slidestream/error.hpp>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include "config/suggest.hpp"
#include "ledger/attachments.hpp"
#include "ledger/map_files.hpp"
#include "ledger/schema.hpp"
#include "ledger/slide_row.hpp"
#include "ledger/start_notes.hpp"
#include "output/folders.hpp"
#include "sink/file_digest.hpp"
#include "sink/image_formats.hpp"
#include "system/denied.hpp"
#include "system/there.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t first_version_with_artifacts = 3;

/// Whether a file is NAME.SUFFIX with one of the names, which may have dots.
bool is_of(const std::string& file, const std::unordered_set<std::string>& names) {
  for (std::size_t dot = file.find('.'); dot != std::string::npos; dot = file.find('.', dot + 1)) {
    if (names.contains(file.substr(0, dot))) return true;
  }
  return false;
}

/// The first entry on the way from the folder to a file in it that is a link or no folder; empty: there is none.
fs::path obstacle_before(const fs::path& folder, const fs::path& file) {
  fs::path at = folder;
  const fs::path parent = file.parent_path();
  for (const fs::path& part : parent) {
    at /= part;
    std::error_code code;
    const fs::file_type type = fs::symlink_status(at, code).type();
    // What can't be looked at can't be moved to, either, and that gives the reason.
    if (type == fs::file_type::not_found || type == fs::file_type::none) return {};
    if (type != fs::file_type::directory) return at;
  }
  return {};
}

/// Whether a file's folder lies in `home`, the folder's canonical path: no link leads out of it.
/// \throws OutputError where that can't be said, and no link on the way says that somebody moved it
bool lies_in(const fs::path& home, const fs::path& folder, const fs::path& file) {
  const fs::path parent = (folder / file).parent_path();
  std::error_code code;
  const fs::path found = fs::canonical(parent, code);
  if (!code) return std::ranges::mismatch(home, found).in1 == home.end();
  if (says_absent(code) || !obstacle_before(folder, file).empty()) return false;
  throw OutputError(parent.string() + ": can't be looked at: " + reason_of(code.value(), parent));
}

/// Whether a file, relative to the folder, lies with another run's ledger: a run that joined others lists their files.
/// \throws OutputError where that can't be said
bool is_of_another_run(const fs::path& folder, const fs::path& file) {
  for (fs::path at = file.parent_path(); !at.empty(); at = at.parent_path()) {
    if (target_at(folder / at / ledger_name) != fs::file_type::not_found) return true;
  }
  return false;
}

/// Whether runs give files such names: below the folder of maps or one of `slide_folders`. A damaged ledger may list
/// others, such as its own.
bool can_be_made(const std::string& file) {
  if (!is_inside(file) || file.find('\0') != std::string::npos) return false;
  const fs::path path = file;
  const std::string first = path.begin()->string();
  const bool is_known = first == "maps" || std::ranges::find(slide_folders, first) != slide_folders.end();
  return is_known && std::next(path.begin()) != path.end();
}

/// A link is somebody's who moved the file away. \throws OutputError where nothing tells what is there
bool is_file_or_folder(const fs::path& path) {
  const fs::file_type type = entry_at(path);
  return type == fs::file_type::regular || type == fs::file_type::directory;
}

/// Whether a file that a ledger names is there, and its run may move it. \throws OutputError where that can't be said
bool is_own_file(const fs::path& home, const fs::path& folder, const std::string& file) {
  return can_be_made(file) && lies_in(home, folder, file) && is_file_or_folder(folder / file) &&
         !is_of_another_run(folder, file);
}

/// Whether a ledger lists a file properly that isn't in its run's own folders: with another run that was joined.
bool is_elsewhere(const fs::path& folder, const std::string& file) {
  if (fs::path(file).is_absolute()) return true;
  try {
    return is_inside(file) && is_of_another_run(folder, file);
  } catch (const OutputError&) {
    // Nothing of it moves.
    return true;
  }
}

/// \throws OutputError where that can't be said
bool is_taken(const fs::path& folder, const fs::path& file) {
  return obstacle_before(folder, file).empty() && has_entry(folder / file);
}

/// `earlier_of_failed`, or its first folder in which no file has one of the names.
fs::path free_place(const fs::path& folder, const std::vector<std::string>& files) {
  const fs::path first = earlier_of_failed;
  fs::path place = first;
  const auto taken = [&](const std::string& file) { return is_taken(folder, place / file); };
  for (int number = 2; std::ranges::any_of(files, taken); ++number) place = first / std::to_string(number);
  return place;
}

/// Moves a file within the folder. \return why it stays; empty: it moved
std::string move_within(const fs::path& folder, const fs::path& from, const fs::path& to) {
  const fs::path obstacle = obstacle_before(folder, to);
  std::error_code code;
  if (!obstacle.empty()) {
    return obstacle.string() + (fs::is_symlink(fs::symlink_status(obstacle, code)) ? " is a link" : " isn't a folder");
  }
  fs::create_directories((folder / to).parent_path(), code);
  if (!code) fs::rename(folder / from, folder / to, code);
  return code ? "it can't move to " + (folder / to).string() + ": " + code.message() : std::string();
}

/// \throws ConfigError where nothing tells whether a file is there: a folder on the way can't be entered, a disk isn't
/// mounted, storage fails. Whoever takes it for lost does a slide again that is done.
void check_visible(const fs::path& file) {
  std::error_code code;
  const fs::file_status status = fs::status(file, code);
  if (fs::is_directory(status)) {
    fs::recursive_directory_iterator entry(file, code);
    while (!code && entry != fs::recursive_directory_iterator()) entry.increment(code);
  }
  if (code && code != std::errc::no_such_file_or_directory && code != std::errc::not_a_directory) {
    throw ConfigError(one_line(file.string()) + ": can't be looked at: " + reason_of(code.value(), file));
  }
  if (const fs::path link = lost_link(file); !link.empty()) {
    throw ConfigError(one_line(link.string()) + ": is a link to " + one_line(fs::read_symlink(link, code).string()) +
                      ", where nothing is; without the link what it should lead to is made again");
  }
}

}  // namespace

bool is_unfinished(const std::string& file, const std::unordered_set<std::string>& names) {
  constexpr std::string_view partial = ".partial";
  std::size_t mark = file.rfind(partial);
  if (mark == std::string::npos || mark == 0) return false;
  const std::size_t behind = mark + partial.size();
  if (behind == file.size() || (file[behind] != '.' && file[behind] != '_')) return false;
  const std::string mark_on = file.substr(mark);
  if (mark_on == ".partial.h5" || mark_on == ".partial.pt") return names.contains(file.substr(0, mark));
  if (std::string_view(file).substr(0, mark).ends_with(partial)) mark -= partial.size();
  if (mark == 0) return false;
  const std::size_t dot = file.rfind('.', mark - 1);
  return dot != std::string::npos && names.contains(file.substr(0, dot));
}

fs::path place_of(const fs::path& folder, const std::string& file) {
  if (!is_inside(file) || can_be_made(file)) return folder / file;
  std::error_code code;
  const fs::path home = fs::weakly_canonical(folder, code);
  if (code || !home.filename().string().starts_with("earlier-")) return folder / file;
  const fs::path first = home / *fs::path(file).begin();
  const bool is_here = fs::symlink_status(first, code).type() != fs::file_type::not_found;
  return is_here ? folder / file : home.parent_path() / file;
}

std::string fault_of(const fs::path& file, const Artifact& made, int& code) {
  const bool is_folder = is_folder_of_image(made.file);
  const auto bytes = path_bytes(file, code, is_folder);
  if (!bytes && code == 0) return file.string() + (is_folder ? " isn't a folder" : " isn't a file");
  if (!bytes) return file.string() + " is missing";
  if (*bytes == made.bytes) return {};
  return file.string() + " has " + std::to_string(*bytes) + " bytes and had " + std::to_string(made.bytes);
}

std::string first_unmade(const fs::path& folder, const std::vector<Artifact>& artifacts) {
  for (const Artifact& artifact : artifacts) {
    const fs::path file = place_of(folder, artifact.file);
    int code = 0;
    std::string fault = fault_of(file, artifact, code);
    if (code != 0) check_visible(file);
    if (!fault.empty()) return fault;
  }
  return {};
}

std::size_t links_among(const fs::path& folder, const std::vector<Artifact>& artifacts, std::string& first) {
  std::size_t links = 0;
  for (const Artifact& artifact : artifacts) {
    const fs::path file = place_of(folder, artifact.file);
    std::error_code code;
    if (!fs::is_symlink(fs::symlink_status(file, code))) continue;
    if (first.empty()) first = file.string();
    ++links;
  }
  return links;
}

std::string line_of_links(std::size_t links, const std::string& first) {
  const bool is_one = links == 1;
  return one_line(first) + ": " + std::to_string(links) + (is_one ? " file" : " files") + " of slides that are done " +
         (is_one ? "is a link" : "are links, and this is the first") + "; what " +
         (is_one ? "it leads to has" : "they lead to has") + " not been read, and verify counts " +
         (is_one ? "it" : "them") + " as differing";
}

void remove_artifacts(const fs::path& folder, const std::vector<Artifact>& artifacts) noexcept {
  for (const Artifact& artifact : artifacts) {
    std::error_code code;
    if (is_inside(artifact.file)) fs::remove_all(folder / artifact.file, code);
  }
}

SetAside set_aside(const fs::path& folder, const std::vector<std::string>& files) noexcept {
  SetAside result;
  try {
    std::error_code code;
    const fs::path home = fs::canonical(folder, code);
    if (code) return result;
    std::vector<std::string> own;
    std::ranges::copy_if(files, std::back_inserter(own),
                         [&](const std::string& file) { return is_own_file(home, folder, file); });
    const fs::path place = free_place(folder, own);
    std::size_t more = 0;
    for (const std::string& file : own) {
      const std::string cause = move_within(folder, file, place / file);
      if (cause.empty()) {
        result.folder = folder / place;
      } else if (result.refusal.empty()) {
        result.refusal = (folder / file).string() + " stays, as " + cause;
      } else {
        ++more;
      }
    }
    if (more > 0) result.refusal += "; so do others of its files: " + std::to_string(more);
  } catch (const OutputError& error) {
    // What can't be looked at stays, and with it all others.
    result.refusal = error.what();
  } catch (const std::exception&) {
    // They stay where they are.
  }
  return result;
}

ListedFiles files_of_slides(Database& database, const fs::path& folder) {
  ListedFiles listed;
  std::vector<fs::path>& found = listed.files;
  if (check_schema(database) < first_version_with_artifacts) return listed;
  check_table(database, "artifacts");
  std::error_code code;
  const fs::path home = fs::canonical(folder, code);
  if (code) throw OutputError(folder.string() + ": " + code.message());
  Statement files(database, "SELECT file FROM artifacts");
  while (files.step()) {
    const std::string file = files.text(0);
    if (is_own_file(home, folder, file)) found.emplace_back(file);
    if (can_be_made(file) || is_elsewhere(folder, file)) continue;
    if (listed.passed_over++ == 0) listed.first_passed_over = file;
  }
  std::unordered_set<std::string> names;
  Statement select(database, "SELECT image_name FROM slides WHERE image_name IS NOT NULL");
  while (select.step()) names.insert(select.text(0));
  // A process died, and may have given their files names.
  std::unordered_set<std::string> begun;
  const std::unordered_set<std::int64_t> with_files = slides_with_files(database);
  Statement of(database, "SELECT image_name FROM slides WHERE id = ?1 AND image_name IS NOT NULL");
  for (const std::int64_t slide : with_files) {
    if (of.bind(1, slide).step()) begun.insert(of.text(0));
    of.reset();
  }
  for (const fs::path kind : slide_folders) {
    // Else the next run would write over what it leads to.
    if (entry_at(folder / kind) == fs::file_type::symlink) found.push_back(kind);
    if (!lies_in(home, folder, kind / "any")) continue;
    for (const fs::path& file : names_in(folder / kind)) {
      const bool is_left = is_unfinished(file.string(), names) || is_of(file.string(), begun);
      if (is_left && is_file_or_folder(folder / kind / file)) found.push_back(kind / file);
    }
  }
  return listed;
}

std::vector<std::string> files_of_slide(Database& database, std::int64_t slide) {
  std::vector<std::string> files;
  Statement row(database, "SELECT attached, map_name, image_name FROM slides WHERE id = ?1");
  if (!row.bind(1, slide).step()) return files;
  SlideResult listed;
  const auto attached = unsigned_or_null(row, 0);
  if (attached && AttachmentReader(database).read(slide, *attached, listed)) {
    for (Artifact& artifact : listed.artifacts) files.push_back(std::move(artifact.file));
  }
  const std::string map = row.text(1);
  if (!map.empty() && map.find('/') == std::string::npos) files.push_back(map_path(map));
  // A slide that is to be done again gets another name with another path.
  const std::string own = row.text(2) + ".";
  Statement others(database,
                   "SELECT 1 FROM slides WHERE id <> ?1 AND length(image_name) > 0 AND substr(?2, 1, "
                   "length(image_name) + 1) = CAST(image_name || '.' AS BLOB) LIMIT 1");
  std::erase_if(files, [&](const std::string& file) {
    const std::string name = fs::path(file).filename().string();
    if (name.starts_with(own)) return false;
    const bool is_anothers = others.bind(1, slide).bind_blob(2, std::string_view(name)).step();
    others.reset();
    return is_anothers;
  });
  return files;
}

bool may_have_files(const fs::path& folder, const std::string& name) noexcept {
  try {
    const std::unordered_set<std::string> names = {name};
    for (const fs::path kind : slide_folders) {
      const std::vector<fs::path> files = names_in(folder / kind);
      const auto is_final = [&names](const fs::path& file) {
        return is_of(file.string(), names) && !is_unfinished(file.string(), names);
      };
      if (std::ranges::any_of(files, is_final)) return true;
    }
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

std::string artifact_elsewhere(const fs::path& from, const std::string& file, const fs::path& to) {
  const fs::path path = place_of(fs::weakly_canonical(from), file);
  const std::string inside = path.lexically_relative(fs::weakly_canonical(to)).string();
  return is_inside(inside) ? inside : path.string();
}

}  // namespace slidestream
