#include "system/there.hpp"

#include <slidestream/error.hpp>

#include "system/denied.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::error_code& code) {
  throw OutputError(path.string() + ": can't be looked at: " + reason_of(code.value(), path));
}

fs::file_type known_type(const fs::file_status& status, const std::error_code& code, const fs::path& path) {
  if (status.type() != fs::file_type::none) return status.type();
  if (!says_absent(code)) fail(path, code);
  return fs::file_type::not_found;
}

}  // namespace

bool says_absent(const std::error_code& code) noexcept {
  return code == std::errc::no_such_file_or_directory || code == std::errc::not_a_directory ||
         code == std::errc::too_many_symbolic_link_levels || code == std::errc::filename_too_long;
}

fs::file_type entry_at(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(path, code);
  return known_type(status, code, path);
}

fs::file_type target_at(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  return known_type(status, code, path);
}

bool has_entry(const fs::path& path) { return entry_at(path) != fs::file_type::not_found; }

std::vector<fs::path> names_in(const fs::path& folder) {
  std::vector<fs::path> names;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator(); entry.increment(code)) {
    names.push_back(entry->path().filename());
  }
  if (code && !says_absent(code)) fail(folder, code);
  return names;
}

}  // namespace slidestream
