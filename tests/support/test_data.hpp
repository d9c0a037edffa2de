#pragma once

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

namespace slidestream::test {

/// The project's own folder.
std::filesystem::path source_root();

/// The folder with `data/` and `oracle/`: $SLIDESTREAM_TEST_DATA, else `../shared` beside the source tree.
std::optional<std::filesystem::path> test_data_root();

/// Marks the running CTest entry as skipped: CTest looks for this line.
inline void report_skipped(const std::string& why) { std::cout << "SKIPPED: " << why << '\n'; }

}  // namespace slidestream::test
