#include "config/read_file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <slidestream/error.hpp>

#include "config/manifest.hpp"
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

TEST_CASE("a list is read no further than its first NUL byte") {
  const test::TemporaryFolder folder;
  const std::string file = folder / "large.list";
  std::ofstream(file) << "a.svs\n";
  constexpr std::uintmax_t largest = std::uintmax_t{1} << 28;
  std::filesystem::resize_file(file, largest);
  // In KiB.
  const auto most_memory = [] {
    struct ::rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = most_memory();
  CHECK_THROWS_WITH_AS(read_list(file), (file + ":2: a NUL byte; expected a text file").c_str(), ConfigError);
  CHECK(most_memory() - before < (64 << 10));
  std::filesystem::resize_file(file, largest + 1);
  CHECK_THROWS_WITH_AS(read_list(file), (file + ": larger than 256 MiB").c_str(), ConfigError);
}

TEST_CASE("a list in UTF-16 is refused by that name") {
  const test::TemporaryFolder folder;
  for (const char* name : {"a.list", "a.csv"}) {
    const std::string file = folder / name;
    for (const std::string mark : {"\xff\xfe", "\xfe\xff"}) {
      std::ofstream(file) << mark << std::string("a\0\n\0", 4);
      CHECK_THROWS_WITH_AS(read_list(file), (file + ": is text in UTF-16; save it as UTF-8").c_str(), ConfigError);
    }
    // Not at the beginning these bytes are a name's.
    std::ofstream(file) << "a\xff\xfe.svs\n";
    CHECK(read_list(file) == "a\xff\xfe.svs\n");
  }
}
