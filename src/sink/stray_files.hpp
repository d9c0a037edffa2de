#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

/// \file
/// Files that browsers of files and NFS put into any folder.

namespace slidestream {

/// Whether a file has such a name: Thumbs.db and desktop.ini of Windows, .DS_Store and ._NAME of macOS, .nfsNUMBER of
/// NFS.
inline bool is_stray_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> names = {"Thumbs.db", "thumbs.db", "desktop.ini", "Desktop.ini",
                                                     ".DS_Store"};
  constexpr std::string_view of_nfs = ".nfs";
  if (name.starts_with("._") || std::ranges::find(names, name) != names.end()) return true;
  return name.starts_with(of_nfs) && name.size() > of_nfs.size() &&
         name.find_first_not_of("0123456789abcdef", of_nfs.size()) == std::string_view::npos;
}

/// Whether an entry of a folder that this program made is no part of what it made.
inline bool is_stray_file(const std::filesystem::directory_entry& entry) {
  std::error_code ignored;
  return is_stray_name(entry.path().filename().string()) && !entry.is_directory(ignored);
}

}  // namespace slidestream
