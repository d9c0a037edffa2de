#pragma once

#include <cstdlib>
#include <filesystem>

/// \file
/// Where tests have files that are to be on a disk.

namespace slidestream::test {

/// A folder on a disk, also where the files of other tests are in memory.
inline std::filesystem::path disk() {
  const char* const said = std::getenv("SLIDESTREAM_TEST_DISK");
  return said != nullptr ? std::filesystem::path(said) : std::filesystem::temp_directory_path();
}

}  // namespace slidestream::test
