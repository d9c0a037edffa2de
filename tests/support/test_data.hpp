#pragma once

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

namespace slidestream::test {

/// The folder with `data/` and `oracle/`: $SLIDESTREAM_TEST_DATA, else `../shared` beside the source tree.
inline std::optional<std::filesystem::path> test_data_root() {
  const char* named = std::getenv("SLIDESTREAM_TEST_DATA");
  const std::filesystem::path root =
      named != nullptr ? std::filesystem::path(named) : std::filesystem::path(SLIDESTREAM_SOURCE_DIR) / ".." / "shared";
  if (std::filesystem::is_directory(root / "data")) return root;
  return std::nullopt;
}

/// Marks the running CTest entry as skipped: CTest looks for this line.
inline void report_skipped(const std::string& why) { std::cout << "SKIPPED: " << why << '\n'; }

}  // namespace slidestream::test
