#include "config/read_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <slidestream/error.hpp>

#include "support/temporary_folder.hpp"

using namespace slidestream;

TEST_CASE("files are read whole within a bound, and nothing else is waited for") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "file";
  std::ofstream(file) << "12345";
  CHECK(read_file(file, 5, FileOrigin::own) == "12345");
  CHECK_THROWS_WITH_AS(read_file(file, 4, FileOrigin::own), doctest::Contains("larger than 4 bytes"), ConfigError);
  const std::filesystem::path link = folder / "link";
  std::filesystem::create_symlink("file", link);
  CHECK(read_file(link, 5, FileOrigin::given) == "12345");
  CHECK_THROWS_WITH_AS(read_file(link, 5, FileOrigin::own), doctest::Contains("is a link"), ConfigError);
  const std::filesystem::path pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const FileOrigin origin : {FileOrigin::given, FileOrigin::given_or_pipe, FileOrigin::own}) {
    CHECK_THROWS_WITH_AS(read_file(folder.path(), 5, origin), doctest::Contains("not a regular file"), ConfigError);
    CHECK_THROWS_WITH_AS(read_file(pipe, 5, origin), doctest::Contains("not a regular file"), ConfigError);
    CHECK_THROWS_WITH_AS(read_file(folder / "none", 5, origin), doctest::Contains("No such file"), ConfigError);
  }
  CHECK_THROWS_AS(read_file("/dev/zero", 5, FileOrigin::given), ConfigError);
  CHECK_THROWS_WITH_AS(read_file("/dev/zero", 5, FileOrigin::given_or_pipe), doctest::Contains("larger"), ConfigError);
}
