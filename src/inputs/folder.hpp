#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "inputs/input_kind.hpp"

namespace slidestream {

/// What is looked for in a folder.
struct FolderSearch {
  InputKind kind = InputKind::slide;
  std::filesystem::path results;  ///< this run's folder of results, which needn't be there; empty: there is none
};

/// The slides below a folder, or the volumes.
struct FolderContents {
  std::vector<std::string> slides;    ///< sorted bytewise: slides by path, volumes by each name in the path
  std::vector<std::string> warnings;  ///< one line each
  /// Of files that aren't slides by their names: how many end so, in lower case; "" for those without a suffix.
  std::map<std::string, std::size_t> other_suffixes;
};

/// Looks for slides in a folder and those below: files with a suffix of a format, in any case, and those that a format
/// knows by content. Of a slide of several files the one stands there that it is called by. Files and folders whose
/// names begin with a dot are skipped, and so are links to folders above; other links are followed, to each folder
/// once. A folder with the ledger of a run is passed over, but for the first folder and this run's folder of results.
/// Of these two, `images`, `maps` and `earlier-failed` are passed over beside a ledger, and so are links to those of
/// any run. A warning says how many files are. So are files that a format knows to be no slides, though they are named
/// like them. Nothing is left out in silence: a folder that can't be read is named in a warning and stands in `slides`
/// itself, where it fails as a slide; so does a folder with a slide's suffix that holds no slides. Of volumes only the
/// suffix counts, and a folder is none.
FolderContents slides_in_folder(const std::string& folder, const FolderSearch& search);

}  // namespace slidestream
