#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace slidestream {

/// Olympus' .vsi files are TIFF with an overview. A slide's pixels lie in .ets files in the folder `_NAME_` beside it,
/// which aren't read. Without that folder the file may hold a whole picture, and a warning says so.
/// \throws SlideError where the folder has such a file
void check_ets_files(const std::filesystem::path& path, std::vector<std::string>& warnings);

}  // namespace slidestream
