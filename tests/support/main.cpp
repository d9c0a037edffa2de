#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>

namespace {

/// Whether files of a test have room there, and programs among them may run.
bool has_room(const char* folder) {
  struct statvfs about {};
  if (::access(folder, W_OK | X_OK) != 0 || ::statvfs(folder, &about) != 0) return false;
  return (about.f_flag & ST_NOEXEC) == 0 && std::uint64_t{about.f_bavail} * about.f_frsize >= std::uint64_t{2} << 30;
}

}  // namespace

/// Runs the program's tests. Their files are in memory where nobody says otherwise with TMPDIR: whoever publishes a
/// file waits for the disk, which was most of what tests of images took. Tests of reading from a disk ask for
/// `test::disk()`.
int main(int count, char** arguments) {
  constexpr const char* memory = "/dev/shm";
  if (::getenv("TMPDIR") == nullptr && has_room(memory)) {
    ::setenv("SLIDESTREAM_TEST_DISK", std::filesystem::temp_directory_path().c_str(), 1);
    ::setenv("TMPDIR", memory, 1);
  }
  return doctest::Context(count, arguments).run();
}
