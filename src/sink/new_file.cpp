#include "sink/new_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <slidestream/error.hpp>

#include "sink/file_calls.hpp"
#include "system/denied.hpp"

namespace slidestream {

void write_new_file(const std::filesystem::path& path, std::initializer_list<std::span<const std::byte>> parts) {
  const auto fail = [&path](int code) { throw OutputError(path.string() + ": " + reason_of(code, path)); };
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(errno);
  int code = 0;
  std::uint64_t offset = 0;
  for (const std::span<const std::byte> part : parts) {
    if (code == 0) code = write_at(descriptor, offset, part);
    offset += part.size();
  }
  if (::close(descriptor) != 0 && code == 0) code = errno;
  if (code == 0) return;
  ::unlink(path.c_str());
  fail(code);
}

}  // namespace slidestream
