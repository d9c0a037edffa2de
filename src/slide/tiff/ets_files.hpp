#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace slidestream {

/// Refuses a .vsi file of Olympus that is only the overview of a slide; other files pass. A .vsi file is a TIFF file.
/// The slide's pixels lie in .ets files in the folder `_NAME_` beside it, which aren't read. The function searches this
/// folder and its direct subfolders, at most 4,096 entries of each. If it finds no .ets file, the .vsi file may hold a
/// whole picture, and a warning says so. \throws SlideError if it finds an .ets file
void refuse_olympus_overview(const std::filesystem::path& path, std::vector<std::string>& warnings);

}  // namespace slidestream
