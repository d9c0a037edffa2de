#include "support/held_writes.hpp"

#include <dlfcn.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <system_error>

namespace slidestream::test {
namespace {

struct Hold {
  std::mutex mutex;
  std::condition_variable changed;
  std::string part;  ///< empty: no write is held
  int waiting = 0;
};

Hold& hold() {
  static Hold one;
  return one;
}

void wait_where_held(int descriptor) {
  Hold& held = hold();
  std::unique_lock lock(held.mutex);
  if (held.part.empty()) return;
  std::error_code ignored;
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored);
  if (path.string().find(held.part) == std::string::npos) return;
  ++held.waiting;
  held.changed.wait(lock, [&held] { return held.part.empty(); });
  --held.waiting;
}

}  // namespace

void hold_writes(const std::string& part) {
  const std::lock_guard lock(hold().mutex);
  hold().part = part;
}

bool write_waits() {
  const std::lock_guard lock(hold().mutex);
  return hold().waiting > 0;
}

void let_writes_go() {
  const std::lock_guard lock(hold().mutex);
  hold().part.clear();
  hold().changed.notify_all();
}

}  // namespace slidestream::test

extern "C" ssize_t pwritev(int descriptor, const iovec* pieces, int count, off_t at) {
  static const auto real = reinterpret_cast<decltype(&pwritev)>(dlsym(RTLD_NEXT, "pwritev"));
  slidestream::test::wait_where_held(descriptor);
  return real(descriptor, pieces, count, at);
}
