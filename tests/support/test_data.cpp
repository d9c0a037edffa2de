#include "support/test_data.hpp"

#include <cstdlib>

namespace slidestream::test {

std::optional<std::filesystem::path> test_data_root() {
  const char* named = std::getenv("SLIDESTREAM_TEST_DATA");
  const std::filesystem::path root =
      named != nullptr ? std::filesystem::path(named) : std::filesystem::path(SLIDESTREAM_SOURCE_DIR) / ".." / "shared";
  if (std::filesystem::is_directory(root / "data")) return root;
  return std::nullopt;
}

}  // namespace slidestream::test
