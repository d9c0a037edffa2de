#include "sink/temporary_name.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace slidestream {

std::filesystem::path temporary_name(const std::filesystem::path& file) {
  static std::atomic<std::uint64_t> count{0};
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  return folder / (std::string(temporary_prefix) + std::to_string(::getpid()) + "-" + std::to_string(count++) +
                   std::string(temporary_suffix));
}

}  // namespace slidestream
