#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace slidestream::test {

/// The project's own folder.
std::filesystem::path source_root();

/// The folder with `data/` and `oracle/`: $SLIDESTREAM_TEST_DATA, else `../shared` beside the source tree.
std::optional<std::filesystem::path> test_data_root();

/// Marks the running test case as skipped: a program whose cases all are ends with status 77 if nothing failed.
void report_skipped(const std::string& why);

}  // namespace slidestream::test
