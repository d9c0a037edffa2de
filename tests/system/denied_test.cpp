#include "system/denied.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "support/nobody.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using slidestream::test::Nobody;
using slidestream::test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("what denies a file is named with its permissions") {
  const TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  const fs::path closed = folder / "closed";
  fs::create_directories(closed / "below");
  const auto denied = [&](::mode_t mode, const fs::path& file) {
    REQUIRE(::chmod(closed.c_str(), mode) == 0);
    const Nobody nobody;
    return denied_at(file);
  };
  const std::string far = denied(0777, closed / "a");
  if (!far.empty()) {
    MESSAGE("SKIPPED: nobody may reach the folder for temporary files: " << far);
    return;
  }
  struct ::stat status {};
  REQUIRE(::stat(closed.c_str(), &status) == 0);
  const unsigned user = ::geteuid() == 0 ? Nobody::id : static_cast<unsigned>(::geteuid());
  CHECK(denied(0555, closed / "a") == closed.string() + " has the permissions 0555 and is of user " +
                                          std::to_string(status.st_uid) + " and group " +
                                          std::to_string(status.st_gid) + "; this process is of user " +
                                          std::to_string(user) + ", who can't write in it");
  // Folders are to be made there first.
  CHECK(contains(denied(0555, closed / "new/newer/a"), "closed has the permissions 0555"));
  CHECK(contains(denied(0600, closed / "below/a"), "closed has the permissions 0600"));
  CHECK(contains(denied(0600, closed / "below/a"), "who can't enter it"));
  CHECK(denied(0777, closed / "below").empty() == (::geteuid() != 0));
  {
    REQUIRE(::chmod(closed.c_str(), 0555) == 0);
    const Nobody nobody;
    CHECK(contains(reason_of(EACCES, closed / "a"), "Permission denied: " + closed.string() + " has"));
    CHECK(reason_of(ENOSPC, closed / "a") == "No space left on device");
  }
  REQUIRE(::chmod(closed.c_str(), 0755) == 0);
  // A file in the way of a folder isn't a matter of permissions.
  CHECK(denied_at(folder.write("file", std::string("x")) / "below").empty());
}
