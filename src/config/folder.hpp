#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slidestream {

/// The slides below a folder.
struct FolderContents {
  std::vector<std::string> slides;    ///< sorted bytewise by path
  std::vector<std::string> warnings;  ///< one line each
};

/// Whether a path ends in `suffix` (which is in lower case), in any case.
bool has_suffix(std::string_view path, std::string_view suffix);

/// Whether a path ends as slides' names do.
bool has_slide_suffix(std::string_view path);

/// Looks for .svs, .tif, .tiff and .btf files, in any case, in a folder and those below. Hidden files and folders are
/// skipped, and so are links to folders above; other links are followed, to each folder once. Nothing is left out in
/// silence: a folder that can't be read is named in a warning and stands in `slides` itself, where it fails as a slide;
/// so does a folder with a slide's suffix that holds no slides.
FolderContents slides_in_folder(const std::string& folder);

}  // namespace slidestream
