#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/wide.hpp"

/// \file
/// Test programs don't wait for storage: whether bytes have reached it shows only after a loss of power. Where a test
/// makes many files, the wait is most of its time. The deep check's "wide: ..." wait, and so does the program itself.

namespace {

bool waits_for_storage() {
  static const bool waits = slidestream::test::is_wide();
  return waits;
}

/// As the system's function answers where nothing is to be written.
int answer_for(int descriptor) { return ::fcntl(descriptor, F_GETFD) < 0 ? -1 : 0; }

/// Who syncs such a file wants to drop it from the page cache, which takes clean pages.
bool is_read_alone(int descriptor) {
  struct stat status {};
  return (::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY && ::fstat(descriptor, &status) == 0 &&
         S_ISREG(status.st_mode);
}

}  // namespace

extern "C" int fsync(int descriptor) {
  static const auto real = reinterpret_cast<decltype(&fsync)>(dlsym(RTLD_NEXT, "fsync"));
  return waits_for_storage() ? real(descriptor) : answer_for(descriptor);
}

extern "C" int fdatasync(int descriptor) {
  static const auto real = reinterpret_cast<decltype(&fdatasync)>(dlsym(RTLD_NEXT, "fdatasync"));
  return waits_for_storage() || is_read_alone(descriptor) ? real(descriptor) : answer_for(descriptor);
}

extern "C" int sync_file_range(int descriptor, off_t from, off_t count, unsigned flags) {
  static const auto real = reinterpret_cast<decltype(&sync_file_range)>(dlsym(RTLD_NEXT, "sync_file_range"));
  return waits_for_storage() ? real(descriptor, from, count, flags) : answer_for(descriptor);
}
