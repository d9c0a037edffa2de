#include "cli/own_files.hpp"

#include <algorithm>
#include <array>

#include "cli/own_marks.hpp"
#include "sink/file_marks.hpp"
#include "sink/view_page.hpp"

namespace slidestream::cli {

namespace fs = std::filesystem;

std::string refusal(const fs::path& path) {
  const bool leads_on = is_link(path);
  return one_line(path.string()) +
         (leads_on ? ": is a link, and this program writes none"
                   : ": is there already, and this program didn't write it") +
         offer_to_overwrite + (leads_on ? ", not what it leads to" : "");
}

void check_target(const fs::path& path, bool overwrite) {
  if (overwrite) return;
  check_visible<ConfigError>(path);
  const fs::file_type type = type_at(path);
  // What is neither a file nor absent is refused by who writes.
  const bool is_foreign = is_link(path) || (type == fs::file_type::regular && !is_own(path));
  if (is_foreign) throw ConfigError(refusal(path));
}

void check_page_target(const fs::path& page, PageOf of, bool overwrite) {
  check_target(page, overwrite);
  if (overwrite || type_at(page) != fs::file_type::regular || is_empty_file(page)) return;
  const PageOf there = is_view_page(page) ? PageOf::image : PageOf::report;
  if (there == of) return;
  throw ConfigError(one_line(page.string()) + (there == PageOf::image ? ": is the page of an image" : ": is a report") +
                    offer_to_overwrite);
}

void check_partial_target(const fs::path& partial, bool overwrite) {
  if (overwrite) return;
  check_visible<ConfigError>(partial);
  if (const auto foreign = foreign_partial(partial)) throw ConfigError(refusal(*foreign));
}

void check_folder_target(const fs::path& path, bool overwrite) {
  std::error_code code;
  const bool is_folder = type_at(path) == fs::file_type::directory && !fs::is_empty(path, code);
  if (overwrite || !is_folder) return check_target(path, overwrite);
  if (!is_own(path)) throw ConfigError(refusal(path));
}

void check_progress_target(const fs::path& path, bool overwrite) {
  check_target(path, overwrite);
  const fs::file_type type = type_at(path);
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
    if (type_at(file) == fs::file_type::directory) {
      throw ConfigError(one_line(file.string()) + ": " + std::make_error_code(std::errc::is_a_directory).message());
    }
    // A link to a folder is replaced, if links may be. One to a pipe or a device is no regular file for who writes.
    const fs::file_status there = fs::status(file, code);
    if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there)) {
      throw ConfigError(one_line(file.string()) + ": isn't a regular file");
    }
  }
}

}  // namespace slidestream::cli
