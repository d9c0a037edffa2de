#include "support/test_data.hpp"

#include <cstdlib>

namespace slidestream::test {

std::filesystem::path source_root() { return SLIDESTREAM_SOURCE_DIR; }

std::optional<std::filesystem::path> test_data_root() {
  const char* named = std::getenv("SLIDESTREAM_TEST_DATA");
  const std::filesystem::path root = named != nullptr ? std::filesystem::path(named) : source_root() / ".." / "shared";
  if (std::filesystem::is_directory(root / "data")) return root;
  return std::nullopt;
}

}  // namespace slidestream::test
