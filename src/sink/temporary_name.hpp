#pragma once

#include <filesystem>
#include <string_view>

/// \file
/// Names that this program alone uses, for what has no mark yet of whose it is. What has one is nobody else's.

namespace slidestream {

/// All of them begin and end so, and have the number of the process in between.
inline constexpr std::string_view temporary_prefix = ".slidestream-";
inline constexpr std::string_view temporary_suffix = ".tmp";

/// A name in the folder of `file`, for what gets the name of `file` later: short whatever that one's length, and
/// different for every file of every process.
std::filesystem::path temporary_name(const std::filesystem::path& file);

}  // namespace slidestream
