#include "support/failing_reads.hpp"

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <system_error>

namespace slidestream::test {
namespace {

struct Plan {
  std::mutex mutex;
  std::string part;  ///< empty: nothing is planned
  int left = 0;
  int error = 0;
  int seen = 0;
};

Plan& plan() {
  static Plan planned;
  return planned;
}

/// 0, or the number that this read fails with.
int planned_error(int descriptor) {
  Plan& planned = plan();
  const std::lock_guard lock(planned.mutex);
  if (planned.part.empty()) return 0;
  std::error_code ignored;
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored);
  if (path.string().find(planned.part) == std::string::npos) return 0;
  ++planned.seen;
  return planned.left-- > 0 ? planned.error : 0;
}

}  // namespace

void fail_reads(const std::string& part, int count, int error) {
  Plan& planned = plan();
  const std::lock_guard lock(planned.mutex);
  planned.part = part;
  planned.left = count;
  planned.error = error;
  planned.seen = 0;
}

int reads_seen() {
  const std::lock_guard lock(plan().mutex);
  return plan().seen;
}

}  // namespace slidestream::test

extern "C" ssize_t pread(int descriptor, void* to, size_t bytes, off_t at) {
  static const auto real = reinterpret_cast<decltype(&pread)>(dlsym(RTLD_NEXT, "pread"));
  if (const int error = slidestream::test::planned_error(descriptor); error != 0) {
    errno = error;
    return -1;
  }
  return real(descriptor, to, bytes, at);
}
