#include "slide/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <slidestream/error.hpp>
#include <system_error>

namespace slidestream {
namespace {

std::string system_reason(int error) { return std::generic_category().message(error); }

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "something else";
}

}  // namespace

std::string without_control_characters(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

void throw_slide_error(const std::filesystem::path& path, const std::string& cause) {
  throw SlideError(path.string() + ": " + without_control_characters(cause));
}

File::File(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a FIFO without a writer would wait for ever. It has no effect on regular files.
  do {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw_slide_error(path, "can't be opened: " + system_reason(errno));
  struct stat status {};
  const int error = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor_);
  if (error != 0) throw_slide_error(path, "can't be examined: " + system_reason(error));
  throw_slide_error(path, std::string("is ") + kind_of(status.st_mode) + ", expected a regular file");
}

File::~File() { ::close(descriptor_); }

std::size_t File::read_some(std::uint64_t offset, std::span<std::byte> to) const {
  constexpr std::size_t largest_request = std::size_t{1} << 30;  // below Linux's own limit of one call
  std::size_t done = 0;
  while (done < to.size()) {
    const std::uint64_t at = offset + done;
    if (at < offset || at > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) break;
    const std::size_t request = std::min(to.size() - done, largest_request);
    const ssize_t got = ::pread(descriptor_, to.data() + done, request, static_cast<off_t>(at));
    if (got < 0) {
      if (errno == EINTR) continue;
      throw_slide_error(path_, "can't be read at byte " + std::to_string(at) + ": " + system_reason(errno));
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
