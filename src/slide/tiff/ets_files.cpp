#include "slide/tiff/ets_files.hpp"

#include <cstddef>
#include <system_error>

#include "config/suggest.hpp"
#include "slide/file.hpp"
#include "slide/formats.hpp"

namespace slidestream {
namespace {

namespace fs = std::filesystem;

/// The most entries of a folder that are looked at.
constexpr std::size_t most_entries = 4096;

/// Whether a folder has an .ets file, or a folder in it down to `depth` has one.
bool has_ets_file(const fs::path& folder, int depth) {
  std::error_code code;
  std::size_t seen = 0;
  for (fs::directory_iterator entries(folder, code); !code && entries != fs::directory_iterator();
       entries.increment(code)) {
    if (++seen > most_entries) return false;
    std::error_code unknown;
    if (entries->is_regular_file(unknown) && has_suffix(entries->path().string(), ".ets")) return true;
    if (depth > 0 && entries->is_directory(unknown) && has_ets_file(entries->path(), depth - 1)) return true;
  }
  return false;
}

}  // namespace

void refuse_olympus_overview(const fs::path& path, std::vector<std::string>& warnings) {
  if (!has_suffix(path.string(), ".vsi")) return;
  const std::string name = "_" + path.stem().string() + "_";
  const std::string shown = one_line(name);
  if (has_ets_file(path.parent_path() / name, 1)) {
    throw_slide_error(path, "is the overview of an Olympus slide, whose pixels lie in .ets files in the folder " +
                                shown + " beside it; slidestream doesn't read them");
  }
  warnings.push_back("an Olympus .vsi file without its folder " + shown +
                     " of .ets files: what is read may be an overview of the slide");
}

}  // namespace slidestream
