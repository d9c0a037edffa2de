#include "runtime/page_cache.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace slidestream::runtime {

namespace {

/// Of a file. Sequential reads are cached in pieces far larger than a page.
constexpr std::uint64_t samples = 256;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return number_; }

 private:
  int number_;
};

/// There the kernel counts the pages of the file above, which has none, and not those of the file below.
bool is_on_overlay(int descriptor) noexcept {
  struct ::statfs system {};
  return ::fstatfs(descriptor, &system) == 0 && system.f_type == OVERLAYFS_SUPER_MAGIC;
}

/// The kernel's own count; nothing where it has none, or keeps it from this process. It looks at every page, which
/// takes milliseconds for a large file: of those, as many parts are looked at as there are samples.
std::optional<double> counted(int descriptor, std::uint64_t bytes) noexcept {
  constexpr long cachestat = 451;  // on every architecture; headers know it from Linux 6.5 on
  constexpr std::uint64_t pages_a_part = 16;
  struct Range {
    std::uint64_t offset;
    std::uint64_t length;
  };
  struct {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;  // pages
  } count = {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t pages = (bytes + page - 1) / page;
  const bool all = pages <= 2 * samples * pages_a_part;
  const std::uint64_t parts = all ? 1 : samples;
  const std::uint64_t pages_each = all ? pages : pages_a_part;
  std::uint64_t cached = 0;
  for (std::uint64_t i = 0; i < parts; ++i) {
    // The first part and the last are the file's.
    const std::uint64_t first = all ? 0 : i * (pages - pages_each) / (parts - 1);
    Range range = {first * page, pages_each * page};
    if (::syscall(cachestat, descriptor, &range, &count, 0U) != 0) return std::nullopt;
    cached += count.cached;
  }
  return std::min(1.0, static_cast<double>(cached) / static_cast<double>(parts * pages_each));
}

std::optional<double> sampled(int descriptor, std::uint64_t bytes) noexcept {
#ifdef RWF_NOWAIT
  const std::uint64_t count = std::min(samples, bytes);
  const std::uint64_t step = bytes / count;
  const std::uint64_t first = static_cast<std::uint64_t>(::getpid()) * 40'503 % step;
  std::uint64_t cached = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    char byte = 0;
    ::iovec to = {&byte, 1};
    const ssize_t got = ::preadv2(descriptor, &to, 1, static_cast<off_t>(first + i * step), RWF_NOWAIT);
    if (got < 0 && errno != EAGAIN) return std::nullopt;
    if (got > 0) ++cached;
  }
  return static_cast<double>(cached) / static_cast<double>(count);
#else
  static_cast<void>(descriptor);
  static_cast<void>(bytes);
  return std::nullopt;
#endif
}

}  // namespace

void drop_from_cache(const std::string& path) noexcept {
  const Descriptor file(path);
  if (file.get() < 0) return;
  // Only what is on the disk can be forgotten.
  ::fdatasync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

std::optional<double> cached_share(int descriptor, std::uint64_t bytes) noexcept {
  if (bytes == 0) return std::nullopt;
  if (!is_on_overlay(descriptor)) {
    if (const auto share = counted(descriptor, bytes)) return share;
  }
  return sampled(descriptor, bytes);
}

std::optional<double> cached_share(const std::vector<std::string>& paths) noexcept {
  double bytes = 0.0;
  double cached = 0.0;
  for (const std::string& path : paths) {
    const Descriptor file(path);
    struct ::stat status {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    const auto share = cached_share(file.get(), static_cast<std::uint64_t>(status.st_size));
    if (!share) return std::nullopt;
    bytes += static_cast<double>(status.st_size);
    cached += static_cast<double>(status.st_size) * *share;
  }
  if (bytes <= 0) return std::nullopt;
  return cached / bytes;
}

}  // namespace slidestream::runtime
