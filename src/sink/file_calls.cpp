#include "sink/file_calls.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace slidestream {

namespace {
constexpr std::size_t most_pieces = 1024;  // what Linux takes in a call
}

int write_at(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  ::iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return write_at(descriptor, offset, std::span(&piece, 1));
}

int write_at(int descriptor, std::uint64_t offset, std::span<::iovec> pieces) noexcept {
  while (true) {
    while (!pieces.empty() && pieces.front().iov_len == 0) pieces = pieces.subspan(1);
    if (pieces.empty()) return 0;
    const auto count = static_cast<int>(std::min(pieces.size(), most_pieces));
    const ssize_t written = ::pwritev(descriptor, pieces.data(), count, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    offset += static_cast<std::uint64_t>(written);
    auto rest = static_cast<std::size_t>(written);
    while (rest > 0) {
      ::iovec& piece = pieces.front();
      const std::size_t step = std::min(rest, piece.iov_len);
      piece.iov_base = static_cast<std::byte*>(piece.iov_base) + step;
      piece.iov_len -= step;
      rest -= step;
      if (piece.iov_len == 0) pieces = pieces.subspan(1);
    }
  }
}

int read_at(int descriptor, std::uint64_t offset, std::span<std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EIO;
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

OpenFile::OpenFile(const std::filesystem::path& file) noexcept
    : descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}

OpenFile::~OpenFile() {
  if (descriptor >= 0) ::close(descriptor);
}

int sync_folder_of(const std::filesystem::path& file) noexcept {
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  const int synced = ::fsync(descriptor);
  const int code = errno;
  ::close(descriptor);
  return synced != 0 && code != EINVAL ? code : 0;
}

}  // namespace slidestream
