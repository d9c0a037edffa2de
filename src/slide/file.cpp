#include "slide/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <slidestream/error.hpp>
#include <system_error>
#include <thread>
#include <utility>

namespace slidestream {
namespace {

std::string system_reason(int error) { return std::generic_category().message(error); }

/// Errors that storage over a network gives while it is away for a moment, and a system whose file table is full.
bool may_pass(int error) {
  return error == EIO || error == ESTALE || error == ETIMEDOUT || error == EMFILE || error == ENFILE;
}

/// 0, or the error.
int open_file(const std::filesystem::path& path, int& descriptor) {
  // O_NONBLOCK: opening a FIFO without a writer would wait for ever. It has no effect on regular files.
  do {
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor < 0 ? errno : 0;
}

std::int64_t modification_time(const struct stat& status) {
  // Compared alone: a time that 64 bits don't hold may as well come round again.
  const auto seconds = static_cast<std::uint64_t>(status.st_mtim.tv_sec);
  return static_cast<std::int64_t>(seconds * 1'000'000'000 + static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
}

/// The same file for reads past the system's cache; below 0 where there are none. By its descriptor, for its name may
/// be another file's by now.
int open_direct(int descriptor) noexcept {
#ifdef O_DIRECT
  char name[32];
  std::snprintf(name, sizeof(name), "/proc/self/fd/%d", descriptor);
  return ::open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_DIRECT);
#else
  static_cast<void>(descriptor);
  return -1;
#endif
}

/// Whether reads of `File::direct_block` are fine for the file system, as far as it says.
bool takes_blocks(int descriptor) noexcept {
#ifdef STATX_DIOALIGN
  struct statx about {};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) != 0) return true;
  if ((about.stx_mask & STATX_DIOALIGN) == 0) return true;  // doesn't say
  const auto fits = [](std::uint32_t bytes) { return bytes > 0 && File::direct_block % bytes == 0; };
  return fits(about.stx_dio_mem_align) && fits(about.stx_dio_offset_align);
#else
  static_cast<void>(descriptor);
  return true;
#endif
}

}  // namespace

const char* kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "something else";
}

std::string without_control_characters(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

void throw_slide_error(const std::filesystem::path& path, const std::string& cause) {
  throw SlideError(path.string() + ": " + without_control_characters(cause));
}

void throw_stopped(const std::filesystem::path& path, const std::string& what) {
  throw StoppedError(path.string() + ": " + what + " when the run gave it up");
}

void throw_system_error(const std::filesystem::path& path, const std::string& what, int error) {
  const std::string text = path.string() + ": " + what + ": " + system_reason(error);
  if (error == EMFILE || error == ENFILE) throw DescriptorError(text + "; raise the limit of open files (ulimit -n)");
  if (may_pass(error)) throw StorageError(text);
  throw SlideError(text);
}

std::chrono::milliseconds pause_before_retry(int attempt) noexcept {
  constexpr auto longest = std::chrono::milliseconds(30'000);
  return std::min(longest, std::chrono::milliseconds(100) * (1 << std::clamp(attempt, 0, 12)));
}

File::File(const std::filesystem::path& path, int retries, std::function<bool()> give_up)
    : path_(path), retries_(retries), give_up_(std::move(give_up)) {
  int error = open_file(path, descriptor_);
  for (int attempt = 0; may_pass(error) && wait_for_retry(attempt); ++attempt) error = open_file(path, descriptor_);
  if (error != 0) throw_system_error(path, "can't be opened", error);
  struct stat status {};
  error = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    modified_ = modification_time(status);
    return;
  }
  ::close(descriptor_);
  if (error != 0) throw_slide_error(path, "can't be examined: " + system_reason(error));
  throw_slide_error(path, std::string("is ") + kind_of_file(status.st_mode) + ", expected a regular file");
}

bool File::wait_for_retry(int attempt) const {
  constexpr auto slice = std::chrono::milliseconds(20);
  if (attempt >= retries_) return false;
  const auto end = std::chrono::steady_clock::now() + pause_before_retry(attempt);
  while (std::chrono::steady_clock::now() < end) {
    if (give_up_ && give_up_()) return false;
    std::this_thread::sleep_for(slice);
  }
  return true;
}

File::~File() {
  if (direct_descriptor_ >= 0) ::close(direct_descriptor_);
  ::close(descriptor_);
}

int File::direct_descriptor() const noexcept {
  std::call_once(direct_once_, [this] {
    const int file = open_direct(descriptor_);
    if (file < 0) return;
    struct stat status {};
    const bool same = ::fstat(file, &status) == 0 && static_cast<std::uint64_t>(status.st_size) == size_ &&
                      modification_time(status) == modified_;
    if (same && takes_blocks(file)) {
      direct_descriptor_ = file;
    } else {
      ::close(file);
    }
  });
  return direct_descriptor_;
}

std::int64_t File::read_once(int descriptor, std::uint64_t offset, std::span<std::byte> to) noexcept {
  while (true) {
    const ssize_t got = ::pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset));
    if (got >= 0) return got;
    if (errno != EINTR) return -std::int64_t{errno};
  }
}

std::int64_t File::read_again(int error, std::uint64_t offset, std::span<std::byte> to) const {
  for (int attempt = 0; may_pass(error) && wait_for_retry(attempt); ++attempt) {
    int descriptor = -1;
    error = open_file(path_, descriptor);
    if (error != 0) continue;
    struct stat status {};
    std::int64_t got = ::fstat(descriptor, &status) == 0 ? 0 : -std::int64_t{errno};
    const bool same =
        got == 0 && static_cast<std::uint64_t>(status.st_size) == size_ && modification_time(status) == modified_;
    if (same) got = read_once(descriptor, offset, to);
    ::close(descriptor);
    if (got == 0 && !same) throw_slide_error(path_, "changed while it couldn't be read");
    if (got >= 0) return got;
    error = static_cast<int>(-got);
  }
  return -std::int64_t{error};
}

std::size_t File::read_some(std::uint64_t offset, std::span<std::byte> to) const {
  constexpr std::size_t largest_request = std::size_t{1} << 30;  // below Linux's own limit of one call
  std::size_t done = 0;
  while (done < to.size()) {
    const std::uint64_t at = offset + done;
    if (at < offset || at > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) break;
    const auto room = to.subspan(done, std::min(to.size() - done, largest_request));
    std::int64_t got = read_once(descriptor_, at, room);
    if (got < 0) got = read_again(static_cast<int>(-got), at, room);
    if (got < 0) {
      throw_system_error(path_, "can't be read at byte " + std::to_string(at), static_cast<int>(-got));
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void File::read(std::uint64_t offset, std::span<std::byte> to) const {
  const std::size_t got = read_some(offset, to);
  if (got == to.size()) return;
  throw_slide_error(path_, "ends too early: " + std::to_string(to.size()) + " bytes expected at byte " +
                               std::to_string(offset) + ", found " + std::to_string(got));
}

}  // namespace slidestream
