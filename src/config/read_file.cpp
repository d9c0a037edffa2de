#include "config/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <slidestream/error.hpp>
#include <vector>

namespace slidestream {

namespace {

struct Descriptor {
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  int number = -1;
};

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw ConfigError(file.string() + ": " + what);
}

}  // namespace

std::string read_file(const std::filesystem::path& file, std::size_t largest, FileOrigin origin,
                      const std::function<void(std::string_view)>& look) {
  const std::string name = file.string();
  const bool pipe_is_good =
      origin == FileOrigin::given_or_pipe && (name.starts_with("/dev/") || name.starts_with("/proc/"));
  const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (origin == FileOrigin::own ? O_NOFOLLOW : 0);
  // Without O_NONBLOCK opening a named pipe waits for its writer; the shell's pipes have one.
  const Descriptor opened{::open(name.c_str(), flags | (pipe_is_good ? 0 : O_NONBLOCK))};
  if (opened.number < 0) {
    if (errno == ELOOP && origin == FileOrigin::own) fail(file, "is a link; expected a regular file");
    if (errno == ENXIO) fail(file, "not a regular file");
    fail(file, std::strerror(errno));
  }
  struct ::stat status {};
  if (::fstat(opened.number, &status) != 0) fail(file, std::strerror(errno));
  const bool regular = S_ISREG(status.st_mode);
  if (!regular && !pipe_is_good) fail(file, "not a regular file");
  const auto too_large = [&] {
    fail(file, largest >> 20 > 0 ? "larger than " + std::to_string(largest >> 20) + " MiB"
                                 : "larger than " + std::to_string(largest) + " bytes");
  };
  if (regular && static_cast<std::uint64_t>(status.st_size) > largest) too_large();
  std::string text;
  // Without copies as it grows.
  if (regular) text.reserve(static_cast<std::size_t>(status.st_size));
  std::vector<char> buffer(65536);
  while (true) {
    const ::ssize_t count = ::read(opened.number, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(file, std::strerror(errno));
    if (count == 0) return text;
    const std::string_view piece(buffer.data(), static_cast<std::size_t>(count));
    if (look) look(piece);
    if (piece.size() > largest - text.size()) too_large();
    text += piece;
  }
}

}  // namespace slidestream
