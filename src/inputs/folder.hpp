#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace slidestream {

/// The slides below a folder.
struct FolderContents {
  std::vector<std::string> slides;    ///< sorted bytewise by path
  std::vector<std::string> warnings;  ///< one line each
  /// Of files that aren't slides by their names: how many end so, in lower case; "" for those without a suffix.
  std::map<std::string, std::size_t> other_suffixes;
};

/// Looks for slides in a folder and those below: files with a suffix of a format, in any case, and those that a format
/// knows by content. Of a slide of several files the one stands there that it is called by. Files and folders whose
/// names begin with a dot are skipped, and so are links to folders above; other links are followed, to each folder
/// once. A folder with the ledger of a run is passed over, and so are `images` and `maps` of the first folder if it has
/// one, and links to those of any run: a warning says how many files are. So are files that a format knows to be no
/// slides, though they are named like them. Nothing is left out in silence: a folder that can't be read is named in a
/// warning and stands in `slides` itself, where it fails as a slide; so does a folder with a slide's suffix that holds
/// no slides.
FolderContents slides_in_folder(const std::string& folder);

}  // namespace slidestream
