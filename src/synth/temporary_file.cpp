#include "synth/temporary_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "sink/file_calls.hpp"
#include "system/full_storage.hpp"

namespace slidestream::synth {

TemporaryFile::TemporaryFile(std::filesystem::path target) : target_(std::move(target)), final_(target_) {
  // Renaming over a device or a pipe would replace it.
  std::error_code ignored;
  const auto status = std::filesystem::status(target_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) fail("it isn't a regular file");
  static std::atomic<int> number{0};
  name_ = target_;
  name_ += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
  // A file without a name leaves nothing behind, however this process ends; not every file system has them.
  const std::filesystem::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  descriptor_ = ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
  named_ = descriptor_ < 0;
  if (named_) descriptor_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    failure_ = errno;
    fail("");
  }
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (named_) ::unlink(name_.c_str());
}

bool TemporaryFile::write(std::uint64_t offset, std::span<const std::uint8_t> bytes) noexcept {
  const int code = write_at(descriptor_, offset, std::as_bytes(bytes));
  if (code == 0) size_ = std::max(size_, offset + bytes.size());
  if (failure_ == 0) failure_ = code;
  return code == 0;
}

bool TemporaryFile::read(std::uint64_t offset, std::span<std::uint8_t> bytes) noexcept {
  const int code = read_at(descriptor_, offset, std::as_writable_bytes(bytes));
  if (failure_ == 0) failure_ = code;
  return code == 0;
}

void TemporaryFile::publish() {
  if (!named_) {
    const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      failure_ = errno;
      fail("");
    }
    named_ = true;
  }
  final_.check();
  const int descriptor = std::exchange(descriptor_, -1);
  // Some file systems report a full disk only here.
  if (::close(descriptor) != 0 || ::rename(name_.c_str(), target_.c_str()) != 0) {
    failure_ = errno;
    fail("");
  }
  named_ = false;
}

void TemporaryFile::fail(const std::string& reason) const {
  const std::string why = failure_ != 0 ? std::generic_category().message(failure_) : reason;
  throw_output_error(failure_, target_.string() + ": can't be written: " + why);
}

}  // namespace slidestream::synth
