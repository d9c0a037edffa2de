#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

/// \file
/// What is there, for whoever moves, replaces or removes files: what can't be looked at isn't taken for absent.

namespace slidestream {

/// Whether an error says that a path has nothing: also one that no path can have, as it is too long or goes through
/// links that lead to each other.
bool says_absent(const std::error_code& code) noexcept;

/// What a path has: a link itself. `not_found` only where nothing is.
/// \throws OutputError "PATH: can't be looked at: CAUSE" where that can't be said: rights, or storage that fails
std::filesystem::file_type entry_at(const std::filesystem::path& path);

/// As `entry_at`, for what a link leads to.
std::filesystem::file_type target_at(const std::filesystem::path& path);

/// Whether a path has something, be it a link that leads nowhere. \throws OutputError as `entry_at`
bool has_entry(const std::filesystem::path& path);

/// The names in a folder; none where there is no folder. \throws OutputError as `entry_at`
std::vector<std::filesystem::path> names_in(const std::filesystem::path& folder);

}  // namespace slidestream
