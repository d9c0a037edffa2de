#include "support/failing_reads.hpp"

#include <dlfcn.h>
#include <liburing.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <system_error>

namespace slidestream::test {
namespace {

struct Plan {
  std::mutex mutex;
  std::string part;  ///< empty: nothing is planned
  int before = 0;    ///< reads that succeed first
  int left = 0;
  int error = 0;
  int seen = 0;
};

Plan& plan() {
  static Plan planned;
  return planned;
}

std::atomic<int> ring_reads_left{0};
std::atomic<int> ring_result{0};
std::atomic<bool> no_rings{false};
std::atomic<bool> no_direct{false};

/// 0, or the number that this read fails with.
int planned_error(int descriptor) {
  Plan& planned = plan();
  const std::lock_guard lock(planned.mutex);
  if (planned.part.empty()) return 0;
  std::error_code ignored;
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored);
  if (path.string().find(planned.part) == std::string::npos) return 0;
  if (++planned.seen <= planned.before) return 0;
  return planned.left-- > 0 ? planned.error : 0;
}

}  // namespace

void fail_reads(const std::string& part, int count, int error, int after) {
  Plan& planned = plan();
  const std::lock_guard lock(planned.mutex);
  planned.part = part;
  planned.before = after;
  planned.left = count;
  planned.error = error;
  planned.seen = 0;
}

int reads_seen() {
  const std::lock_guard lock(plan().mutex);
  return plan().seen;
}

void change_ring_reads(int count, int result) {
  ring_result = result;
  ring_reads_left = count;
}

void refuse_rings(bool refuse) { no_rings = refuse; }
void refuse_direct(bool refuse) { no_direct = refuse; }

void fail_nothing() {
  fail_reads("", 0, 0);
  change_ring_reads(0, 0);
  refuse_rings(false);
  refuse_direct(false);
}

}  // namespace slidestream::test

extern "C" int io_uring_queue_init(unsigned entries, io_uring* ring, unsigned flags) {
  static const auto real = reinterpret_cast<decltype(&io_uring_queue_init)>(dlsym(RTLD_NEXT, "io_uring_queue_init"));
  return slidestream::test::no_rings ? -EPERM : real(entries, ring, flags);
}

extern "C" int io_uring_submit_and_wait(io_uring* ring, unsigned wait_for) {
  using namespace slidestream::test;
  static const auto real =
      reinterpret_cast<decltype(&io_uring_submit_and_wait)>(dlsym(RTLD_NEXT, "io_uring_submit_and_wait"));
  const int started = real(ring, wait_for);
  unsigned head = 0;
  io_uring_cqe* done = nullptr;
  io_uring_for_each_cqe(ring, head, done) {
    if (ring_reads_left.fetch_sub(1) <= 0) {
      ring_reads_left.fetch_add(1);
      continue;
    }
    done->res = std::min(done->res, ring_result.load());
  }
  return started;
}

extern "C" int statx(int folder, const char* path, int flags, unsigned mask, struct statx* about) {
  static const auto real = reinterpret_cast<decltype(&statx)>(dlsym(RTLD_NEXT, "statx"));
  const int status = real(folder, path, flags, mask, about);
#ifdef STATX_DIOALIGN
  if (status == 0 && (mask & STATX_DIOALIGN) != 0 && slidestream::test::no_direct) {
    about->stx_mask |= STATX_DIOALIGN;
    about->stx_dio_mem_align = 0;
  }
#endif
  return status;
}

extern "C" ssize_t pread(int descriptor, void* to, size_t bytes, off_t at) {
  static const auto real = reinterpret_cast<decltype(&pread)>(dlsym(RTLD_NEXT, "pread"));
  if (const int error = slidestream::test::planned_error(descriptor); error != 0) {
    errno = error;
    return -1;
  }
  return real(descriptor, to, bytes, at);
}
