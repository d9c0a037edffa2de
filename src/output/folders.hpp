#pragma once

#include <filesystem>

namespace slidestream {

/// Makes a folder and those on the way to it, where they aren't there. \throws OutputError with the folder, or the link
/// on the way that leads nowhere, and the cause
void make_folder(const std::filesystem::path& folder);

}  // namespace slidestream
