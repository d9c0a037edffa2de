#include "output/folders.hpp"

#include <slidestream/error.hpp>
#include <system_error>

#include "system/denied.hpp"

namespace slidestream {

std::filesystem::path lost_link(const std::filesystem::path& path) {
  std::filesystem::path at;
  for (const std::filesystem::path& part : path) {
    at /= part;
    std::error_code code;
    const bool is_link = std::filesystem::is_symlink(std::filesystem::symlink_status(at, code));
    if (is_link && !std::filesystem::exists(at, code)) return at;
  }
  return {};
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  // create_directories says nothing about a file that is in the way at the end.
  std::error_code looked;
  if (!code && std::filesystem::is_directory(folder, looked)) return;
  // For the system a link is something that is there.
  if (const std::filesystem::path link = lost_link(folder); !link.empty()) {
    throw OutputError(link.string() + ": is a link to " + std::filesystem::read_symlink(link, looked).string() +
                      ", where nothing is");
  }
  if (!code) code = looked ? looked : std::make_error_code(std::errc::not_a_directory);
  throw OutputError(folder.string() + ": " + reason_of(code.value(), folder));
}

}  // namespace slidestream
