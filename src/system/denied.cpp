#include "system/denied.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <vector>

namespace slidestream {

namespace {

namespace fs = std::filesystem;

bool may(const fs::path& path, int what) noexcept { return ::faccessat(AT_FDCWD, path.c_str(), what, AT_EACCESS) == 0; }

/// From the root to the folder that the file is in.
std::vector<fs::path> folders_above(const fs::path& file) {
  std::vector<fs::path> folders;
  fs::path folder = file.root_path();
  folders.push_back(folder);
  for (const fs::path& part : file.parent_path().relative_path()) folders.push_back(folder /= part);
  return folders;
}

/// In a folder as /tmp only who owns a file or the folder may replace it.
bool is_kept_for_owner(const fs::path& folder, const fs::path& file) noexcept {
  struct ::stat of_folder {
  }, of_file{};
  if (::stat(folder.c_str(), &of_folder) != 0 || ::lstat(file.c_str(), &of_file) != 0) return false;
  const ::uid_t user = ::geteuid();
  return (of_folder.st_mode & S_ISVTX) != 0 && user != 0 && user != of_folder.st_uid && user != of_file.st_uid;
}

}  // namespace

std::string rights_text(const fs::path& file, const std::string& what) {
  struct ::stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(status.st_mode & 07777));
  return file.string() + " has the permissions " + mode.data() + " and is of user " + std::to_string(status.st_uid) +
         " and group " + std::to_string(status.st_gid) + "; this process is of user " + std::to_string(::geteuid()) +
         ", who can't " + what;
}

std::string denied_at(const fs::path& file) {
  std::error_code code;
  const fs::path whole = fs::absolute(file, code).lexically_normal();
  if (code || !whole.has_filename()) return {};
  fs::path last;
  for (const fs::path& folder : folders_above(whole)) {
    struct ::stat status {};
    if (::stat(folder.c_str(), &status) != 0) break;
    last = folder;
    if (!S_ISDIR(status.st_mode)) return {};
    if (!may(folder, X_OK)) return rights_text(folder, "enter it");
  }
  if (!may(last, W_OK)) return rights_text(last, "write in it");
  if (last != whole.parent_path()) return {};
  if (is_kept_for_owner(last, whole)) return rights_text(whole, "replace it");
  return ::access(whole.c_str(), F_OK) == 0 && !may(whole, W_OK) ? rights_text(whole, "write it") : std::string();
}

std::string reason_of(int code, const fs::path& file) {
  std::string reason = std::generic_category().message(code);
  if (code != EACCES && code != EPERM) return reason;
  const std::string denied = denied_at(file);
  return denied.empty() ? reason : reason + ": " + denied;
}

}  // namespace slidestream
