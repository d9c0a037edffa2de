#include "sink/deep_zoom.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <slidestream/error.hpp>
#include <string>
#include <system_error>

#include "sink/file_calls.hpp"
#include "sink/file_marks.hpp"
#include "sink/partial_file.hpp"
#include "sink/stray_files.hpp"
#include "sink/view_page.hpp"
#include "system/denied.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

fs::path with_end(const fs::path& image, const char* end) {
  return image.parent_path() / (image.stem().string() + end);
}

bool is_there(const fs::path& path) {
  std::error_code code;
  return fs::exists(fs::symlink_status(path, code));
}

/// Whether a folder has files or folders besides those whose names begin with a dot.
bool has_tiles(const fs::path& folder) {
  std::error_code code;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator(); entry.increment(code)) {
    if (!entry->path().filename().string().starts_with('.') && !is_stray_file(*entry)) return true;
  }
  return false;
}

void check(int code, const fs::path& name) {
  if (code != 0) throw OutputError(name.string() + ": " + reason_of(code, name));
}

}  // namespace

fs::path deep_zoom_tiles(const fs::path& image) { return with_end(image, "_files"); }

fs::path deep_zoom_page(const fs::path& image) { return with_end(image, ".view.html"); }

bool has_own_page(const fs::path& image) {
  const fs::path page = deep_zoom_page(image);
  std::error_code code;
  return fs::file_size(page, code) > 0 && !code && is_view_page(page);
}

bool has_half_its_names(const fs::path& image) {
  const fs::path partial = partial_name(image);
  const fs::path tiles = deep_zoom_tiles(partial);
  std::error_code code;
  if (!fs::is_directory(fs::symlink_status(deep_zoom_tiles(image), code))) return false;
  // Beside tiles that have a partial name, or are being removed, those with the final name are an earlier image's, as
  // they are beside their page.
  return !has_own_page(image) && !is_there(tiles) && !is_there(tiles.string() + ".earlier") && has_own_page(partial);
}

bool has_all_names_but_the_page(const fs::path& image) {
  return !is_there(partial_name(image)) && has_half_its_names(image);
}

std::optional<fs::path> foreign_part_of_deep_zoom(const fs::path& image) {
  const fs::path page = deep_zoom_page(image);
  if (is_there(page)) return is_view_page(page) ? std::nullopt : std::optional(page);
  if (is_there(image) && !is_empty_file(image)) return image;
  const fs::path tiles = deep_zoom_tiles(image);
  return has_tiles(tiles) ? std::optional(tiles) : std::nullopt;
}

void take_back_names(const fs::path& image) {
  if (!has_half_its_names(image)) return;
  const fs::path tiles = deep_zoom_tiles(image);
  const OpenFile folder(tiles);
  check(folder.descriptor < 0 ? errno : 0, tiles);
  // A writer that is alive has them locked until the page has its name.
  if (::flock(folder.descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw InUseError(tiles.string() + ": somebody is writing it");
  }
  if (!has_half_its_names(image) || !is_name_of(folder.descriptor, tiles)) return;
  const fs::path partial = partial_name(image);
  if (is_there(image) && !is_there(partial)) give_name(image, partial);
  give_name(tiles, deep_zoom_tiles(partial));
}

}  // namespace slidestream
