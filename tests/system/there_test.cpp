#include "system/there.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "support/nobody.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace fs = std::filesystem;

TEST_CASE("what is there, and what isn't") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("file", std::string("x"));
  fs::create_symlink("nothing", folder / "link");
  fs::create_symlink("loop", folder / "loop");
  CHECK(entry_at(file) == fs::file_type::regular);
  CHECK(entry_at(folder / "link") == fs::file_type::symlink);
  CHECK(target_at(folder / "link") == fs::file_type::not_found);
  for (const fs::path& absent :
       {folder / "none", folder / "none/none", file / "below", folder / "loop/below", folder / std::string(300, 'x')}) {
    CAPTURE(absent);
    CHECK(entry_at(absent) == fs::file_type::not_found);
    CHECK_FALSE(has_entry(absent));
    CHECK(names_in(absent).empty());
  }
  std::vector<fs::path> names = names_in(folder.path());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<fs::path>{"file", "link", "loop"});
}

TEST_CASE("what can't be looked at isn't taken for absent") {
  const TemporaryFolder folder;
  const fs::path closed = folder / "closed";
  fs::create_directory(closed);
  folder.write("closed/file", std::string("x"));
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(closed.c_str(), 0) == 0);
  const auto message = [](const auto& look) -> std::string {
    const Nobody nobody;
    try {
      look();
    } catch (const OutputError& error) {
      return error.what();
    }
    return {};
  };
  for (const fs::path& path : {closed / "file", closed / "none"}) {
    const std::string begin = path.string() + ": can't be looked at: Permission denied";
    CHECK(message([&] { entry_at(path); }).starts_with(begin));
    CHECK(message([&] { target_at(path); }).starts_with(begin));
    CHECK(message([&] { has_entry(path); }).starts_with(begin));
  }
  CHECK(message([&] { names_in(closed); }).starts_with(closed.string() + ": can't be looked at: Permission denied"));
  REQUIRE(::chmod(closed.c_str(), 0700) == 0);
}
