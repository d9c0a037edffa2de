#include "sweep/page_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace slidestream {

namespace {

/// Of a file. Sequential reads are cached in pieces far larger than a page.
constexpr std::int64_t samples = 256;

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

struct Sampled {
  bool known = false;
  double bytes = 0.0;
  double cached = 0.0;
};

Sampled sample(const std::string& path) noexcept {
  Sampled found;
#ifdef RWF_NOWAIT
  const Descriptor file(path);
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
    return found;
  const std::int64_t count = std::min<std::int64_t>(samples, status.st_size);
  std::int64_t cached = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    char byte = 0;
    ::iovec to = {&byte, 1};
    const ssize_t got = ::preadv2(file.get(), &to, 1, status.st_size * i / count, RWF_NOWAIT);
    if (got < 0 && errno != EAGAIN) return found;
    if (got > 0) ++cached;
  }
  found.known = true;
  found.bytes = static_cast<double>(status.st_size);
  found.cached = found.bytes * static_cast<double>(cached) / static_cast<double>(count);
#else
  static_cast<void>(path);
#endif
  return found;
}

}  // namespace

void drop_from_cache(const std::string& path) noexcept {
  const Descriptor file(path);
  if (file.get() < 0) return;
  // Only what is on the disk can be forgotten.
  ::fdatasync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

std::optional<double> cached_share(const std::vector<std::string>& paths) noexcept {
  double bytes = 0.0;
  double cached = 0.0;
  for (const std::string& path : paths) {
    const Sampled found = sample(path);
    if (!found.known) return std::nullopt;
    bytes += found.bytes;
    cached += found.cached;
  }
  if (bytes <= 0) return std::nullopt;
  return cached / bytes;
}

}  // namespace slidestream
