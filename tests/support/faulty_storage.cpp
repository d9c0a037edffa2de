// A library that stands between a program and the C library (LD_PRELOAD) and makes storage fail, or writes down what a
// program does to it. Files below $FAULTY_ROOT only. $FAULTY says what happens:
//
//   count         nothing; how many calls there were is in the report
//   full:N        the N-th writing call and all that follow find no room (ENOSPC)
//   sync:N        the N-th fsync or fdatasync fails (EIO)
//   rename:N      the N-th rename fails (EIO)
//   read:ERRNO:N  the first N reads fail with that number
//   stop:N        the process stops (SIGSTOP) at the N-th writing call, which is made when it goes on
//   slow:MS       every writing call takes so many milliseconds longer
//   record        every change goes into the report, in order
//   clock:N       from the N-th look on the clock is a day behind
//
// $FAULTY_REPORT names the report. Records of `record` are a line "OP [NUMBER ...] LENGTH" and as many bytes each.

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#define REAL(name) reinterpret_cast<decltype(&::name)>(real(#name))

namespace {

void* real(const char* name) { return dlsym(RTLD_NEXT, name); }

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

class Faults {
 public:
  Faults() : root_(variable("FAULTY_ROOT")), mode_(variable("FAULTY")), report_(variable("FAULTY_REPORT")) {
    const std::size_t colon = mode_.find(':');
    if (colon != std::string::npos) {
      const std::string rest = mode_.substr(colon + 1);
      mode_.resize(colon);
      at_ = atol(rest.substr(rest.rfind(':') == std::string::npos ? 0 : rest.rfind(':') + 1).c_str());
      number_ = atoi(rest.c_str());
    }
    if (mode_ == "record" && !report_.empty()) {
      log_ = REAL(open)(report_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
  }
  ~Faults() {
    if (mode_ == "record" || report_.empty()) return;
    const std::string text = "full " + std::to_string(writes_) + "\nsync " + std::to_string(syncs_) + "\nrename " +
                             std::to_string(renames_) + "\nread " + std::to_string(reads_) + "\n";
    const int descriptor = REAL(open)(report_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    [[maybe_unused]] const auto ignored = REAL(write)(descriptor, text.data(), text.size());
    REAL(close)(descriptor);
  }

  bool ours(const char* path) const {
    return !root_.empty() && path != nullptr && strncmp(path, root_.c_str(), root_.size()) == 0;
  }
  bool ours(int descriptor) const { return number_of(descriptor) != 0; }

  void opened(int descriptor, const char* path) {
    if (descriptor < 0 || static_cast<std::size_t>(descriptor) >= files_.size()) return;
    files_[static_cast<std::size_t>(descriptor)] = ours(path) ? inode_of(descriptor) : 0;
  }
  void closed(int descriptor) {
    if (descriptor >= 0 && static_cast<std::size_t>(descriptor) < files_.size()) {
      files_[static_cast<std::size_t>(descriptor)] = 0;
    }
  }
  std::uint64_t number_of(int descriptor) const {
    if (descriptor < 0 || static_cast<std::size_t>(descriptor) >= files_.size()) return 0;
    return files_[static_cast<std::size_t>(descriptor)];
  }

  /// Outside the lock: others go on.
  void be_slow() const {
    if (mode_ == "slow") usleep(static_cast<useconds_t>(at_) * 1000);
  }
  bool is_full() {
    const long number = ++writes_;
    if (mode_ == "stop" && number == at_) raise(SIGSTOP);
    return mode_ == "full" && number >= at_;
  }
  bool sync_fails() { return ++syncs_ == at_ && mode_ == "sync"; }
  bool rename_fails() { return ++renames_ == at_ && mode_ == "rename"; }
  bool read_fails() { return ++reads_ <= at_ && mode_ == "read"; }
  int read_error() const { return number_; }
  bool clock_is_behind() { return mode_ == "clock" && ++looks_ >= at_; }

  /// One record, whole.
  void record(const std::string& what, const void* bytes, std::size_t length) {
    if (log_ < 0) return;
    std::string text = what + " " + std::to_string(length) + "\n";
    text.append(static_cast<const char*>(bytes), length);
    [[maybe_unused]] const auto ignored = REAL(write)(log_, text.data(), text.size());
  }
  void record(const std::string& what, const std::string& text) { record(what, text.data(), text.size()); }
  std::mutex& mutex() { return mutex_; }

 private:
  static std::uint64_t inode_of(int descriptor) {
    struct ::stat status {};
    return ::fstat(descriptor, &status) == 0 ? status.st_ino : 1;
  }

  std::string root_;
  std::string mode_;
  std::string report_;
  long at_ = 0;
  int number_ = 0;
  int log_ = -1;
  std::array<std::atomic<std::uint64_t>, 4096> files_{};
  std::atomic<long> writes_{0};
  std::atomic<long> syncs_{0};
  std::atomic<long> renames_{0};
  std::atomic<long> reads_{0};
  std::atomic<long> looks_{0};
  std::mutex mutex_;  ///< the order of records is the order of what they record
};

/// Made by the first call, which may come before this library's own constructors run.
Faults& faults() {
  static Faults instance;
  return instance;
}
[[gnu::constructor]] void begin() { faults(); }

/// Names relative to a folder that is open become paths.
std::string path_at(int folder, const char* name) {
  if (folder == AT_FDCWD || name == nullptr || name[0] == '/') return name == nullptr ? "" : name;
  std::array<char, 4096> path{};
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(folder)).c_str(), path.data(), path.size());
  return length < 0 ? name : std::string(path.data(), static_cast<std::size_t>(length)) + "/" + name;
}

template <class Open>
int open_with(Open open, const char* path, int flags, mode_t mode) {
  Faults& all = faults();
  if (!all.ours(path)) return open(path, flags, mode);
  if ((flags & O_CREAT) != 0) all.be_slow();
  const std::lock_guard lock(all.mutex());
  const bool makes = (flags & O_CREAT) != 0 && access(path, F_OK) != 0;
  if (makes && all.is_full()) {
    errno = ENOSPC;
    return -1;
  }
  const int descriptor = open(path, flags, mode);
  all.opened(descriptor, path);
  if (descriptor >= 0 && makes) all.record("create " + std::to_string(all.number_of(descriptor)), path);
  if (descriptor >= 0 && !makes && (flags & O_TRUNC) != 0) {
    all.record("truncate " + std::to_string(all.number_of(descriptor)) + " 0", "");
  }
  return descriptor;
}

template <class Write>
ssize_t write_with(Write write, int descriptor, const void* bytes, std::size_t length, off_t offset) {
  Faults& all = faults();
  if (!all.ours(descriptor)) return write();
  all.be_slow();
  const std::lock_guard lock(all.mutex());
  if (all.is_full()) {
    errno = ENOSPC;
    return -1;
  }
  if (offset < 0) offset = lseek(descriptor, 0, SEEK_CUR);
  const ssize_t written = write();
  if (written > 0) {
    all.record("write " + std::to_string(all.number_of(descriptor)) + " " + std::to_string(offset), bytes,
               static_cast<std::size_t>(written));
  }
  static_cast<void>(length);
  return written;
}

template <class Truncate>
int truncate_with(Truncate truncate, int descriptor, off_t length) {
  Faults& all = faults();
  if (!all.ours(descriptor)) return truncate(descriptor, length);
  const std::lock_guard lock(all.mutex());
  struct ::stat status {};
  const bool grows = ::fstat(descriptor, &status) == 0 && length > status.st_size;
  if (grows && all.is_full()) {
    errno = ENOSPC;
    return -1;
  }
  const int result = truncate(descriptor, length);
  if (result == 0) {
    all.record("truncate " + std::to_string(all.number_of(descriptor)) + " " + std::to_string(length), "");
  }
  return result;
}

template <class Sync>
int sync_with(Sync sync, int descriptor) {
  Faults& all = faults();
  if (!all.ours(descriptor)) return sync(descriptor);
  const std::lock_guard lock(all.mutex());
  if (all.sync_fails()) {
    errno = EIO;
    return -1;
  }
  const int result = sync(descriptor);
  if (result == 0) all.record("sync " + std::to_string(all.number_of(descriptor)), "");
  return result;
}

template <class Read>
ssize_t read_with(Read read, int descriptor) {
  Faults& all = faults();
  if (all.ours(descriptor) && all.read_fails()) {
    errno = all.read_error();
    return -1;
  }
  return read();
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(arguments, unsigned)) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  static const auto next = REAL(open);
  return open_with([](const char* p, int f, mode_t m) { return next(p, f, m); }, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  static const auto next = REAL(open64);
  return open_with([](const char* p, int f, mode_t m) { return next(p, f, m); }, path, flags, mode);
}

/// Folders, and files that are only read, are of nobody's interest: who lists them may close them unseen.
int openat(int folder, const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  static const auto next = REAL(openat);
  if ((flags & O_CREAT) == 0) return next(folder, name, flags, mode);
  return open_with([=](const char*, int f, mode_t m) { return next(folder, name, f, m); },
                   path_at(folder, name).c_str(), flags, mode);
}

int close(int descriptor) {
  static const auto next = REAL(close);
  faults().closed(descriptor);
  return next(descriptor);
}

ssize_t write(int descriptor, const void* bytes, size_t length) {
  static const auto next = REAL(write);
  return write_with([=] { return next(descriptor, bytes, length); }, descriptor, bytes, length, -1);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t length, off_t offset) {
  static const auto next = REAL(pwrite);
  return write_with([=] { return next(descriptor, bytes, length, offset); }, descriptor, bytes, length, offset);
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t length, off64_t offset) {
  static const auto next = REAL(pwrite64);
  return write_with([=] { return next(descriptor, bytes, length, offset); }, descriptor, bytes, length, offset);
}

ssize_t pwritev(int descriptor, const iovec* pieces, int count, off_t offset) {
  static const auto next = REAL(pwritev);
  std::string all;
  for (int i = 0; i < count; ++i) all.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  return write_with([=] { return next(descriptor, pieces, count, offset); }, descriptor, all.data(), all.size(),
                    offset);
}

ssize_t pwritev64(int descriptor, const iovec* pieces, int count, off64_t offset) {
  static const auto next = REAL(pwritev64);
  std::string all;
  for (int i = 0; i < count; ++i) all.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  return write_with([=] { return next(descriptor, pieces, count, offset); }, descriptor, all.data(), all.size(),
                    offset);
}

ssize_t pread(int descriptor, void* bytes, size_t length, off_t offset) {
  static const auto next = REAL(pread);
  return read_with([=] { return next(descriptor, bytes, length, offset); }, descriptor);
}

ssize_t pread64(int descriptor, void* bytes, size_t length, off64_t offset) {
  static const auto next = REAL(pread64);
  return read_with([=] { return next(descriptor, bytes, length, offset); }, descriptor);
}

int ftruncate(int descriptor, off_t length) noexcept {
  static const auto next = REAL(ftruncate);
  return truncate_with(next, descriptor, length);
}

int ftruncate64(int descriptor, off64_t length) noexcept {
  static const auto next = REAL(ftruncate64);
  return truncate_with(next, descriptor, length);
}

int fsync(int descriptor) {
  static const auto next = REAL(fsync);
  return sync_with(next, descriptor);
}

int fdatasync(int descriptor) {
  static const auto next = REAL(fdatasync);
  return sync_with(next, descriptor);
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = REAL(rename);
  Faults& all = faults();
  if (!all.ours(to)) return next(from, to);
  const std::lock_guard lock(all.mutex());
  if (all.rename_fails()) {
    errno = EIO;
    return -1;
  }
  const int result = next(from, to);
  if (result == 0) all.record("rename " + std::to_string(strlen(from)), std::string(from) + to);
  return result;
}

int renameat(int from_folder, const char* from_name, int to_folder, const char* to_name) noexcept {
  static const auto next = REAL(renameat);
  Faults& all = faults();
  const std::string from = path_at(from_folder, from_name);
  const std::string to = path_at(to_folder, to_name);
  if (!all.ours(to.c_str())) return next(from_folder, from_name, to_folder, to_name);
  const std::lock_guard lock(all.mutex());
  if (all.rename_fails()) {
    errno = EIO;
    return -1;
  }
  const int result = next(from_folder, from_name, to_folder, to_name);
  if (result == 0) all.record("rename " + std::to_string(from.size()), from + to);
  return result;
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static const auto next = REAL(renameat2);
  Faults& all = faults();
  if (!all.ours(to)) return next(from_folder, from, to_folder, to, flags);
  const std::lock_guard lock(all.mutex());
  if (all.rename_fails()) {
    errno = EIO;
    return -1;
  }
  return next(from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) noexcept {
  static const auto next = REAL(unlink);
  Faults& all = faults();
  if (!all.ours(path)) return next(path);
  const std::lock_guard lock(all.mutex());
  const int result = next(path);
  if (result == 0) all.record("unlink", path);
  return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = REAL(mkdir);
  Faults& all = faults();
  if (!all.ours(path)) return next(path, mode);
  const std::lock_guard lock(all.mutex());
  if (all.is_full()) {
    errno = ENOSPC;
    return -1;
  }
  const int result = next(path, mode);
  if (result == 0) all.record("mkdir", path);
  return result;
}

int mkdirat(int folder, const char* name, mode_t mode) noexcept {
  static const auto next = REAL(mkdirat);
  Faults& all = faults();
  const std::string path = path_at(folder, name);
  if (!all.ours(path.c_str())) return next(folder, name, mode);
  const std::lock_guard lock(all.mutex());
  if (all.is_full()) {
    errno = ENOSPC;
    return -1;
  }
  const int result = next(folder, name, mode);
  if (result == 0) all.record("mkdir", path);
  return result;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto next = REAL(clock_gettime);
  const int result = next(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME && faults().clock_is_behind()) time->tv_sec -= 86400;
  return result;
}

}  // extern "C"
