#include "sink/partial_folder.hpp"

#include <doctest/doctest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/temporary_folder.hpp"

using namespace slidestream;
namespace fs = std::filesystem;

TEST_CASE("what an earlier writer left loses its name before anything in it is removed") {
  const test::TemporaryFolder directory;
  const fs::path name = directory.path() / "a.partial.ome.zarr";
  const fs::path target = directory.path() / "a.ome.zarr";
  for (const char* file : {"zarr.json", "0/c/0", "0/c/1"}) {
    fs::create_directories((name / file).parent_path());
    std::ofstream(name / file) << "earlier";
  }
  // As a writer leaves it that was killed while it removed one.
  fs::create_directories(name.string() + ".earlier/0");
  const int events = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  REQUIRE(events >= 0);
  REQUIRE(::inotify_add_watch(events, name.c_str(), IN_MOVE_SELF | IN_DELETE) >= 0);
  PartialFolder folder(target, name);
  alignas(inotify_event) std::array<char, 4096> buffer{};
  REQUIRE(::read(events, buffer.data(), buffer.size()) >= static_cast<ssize_t>(sizeof(inotify_event)));
  ::close(events);
  inotify_event first{};
  std::memcpy(&first, buffer.data(), sizeof first);
  CHECK((first.mask & IN_MOVE_SELF) != 0);
  CHECK(fs::is_empty(name));
  CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1);
}
