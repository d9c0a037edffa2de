#pragma once

#include <filesystem>
#include <string>

#include <slidestream/config.hpp>

namespace slidestream {

/// Makes a folder and those on the way to it, where they aren't there. \throws OutputError with the folder, or the link
/// on the way that leads nowhere, and the cause
void make_folder(const std::filesystem::path& folder);

/// The first link on the way to a path, or the path itself, that leads to nothing; empty: there is none.
std::filesystem::path lost_link(const std::filesystem::path& path);

/// Why the folders `maps` and `images` of a run's results can't be written, where they are there and the run writes
/// into them: what lies in their place, or their permissions. One line; empty: nothing is known.
std::string fault_of_folders(const Config& config);

}  // namespace slidestream
