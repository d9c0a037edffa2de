#include "sink/partial_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <slidestream/error.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "sink/file_calls.hpp"

namespace slidestream {

std::filesystem::path partial_name(const std::filesystem::path& file) {
  std::filesystem::path stem = file.stem();
  std::string extensions = file.extension().string();
  if (stem.extension() == ".ome") {
    extensions.insert(0, ".ome");
    stem = stem.stem();
  }
  return file.parent_path() / (stem.string() + ".partial" + extensions);
}

PartialFile::PartialFile(std::filesystem::path target) : target_(std::move(target)), name_(partial_name(target_)) {
  // Renaming over a folder or a device would fail at the end, or replace it.
  std::error_code ignored;
  const auto status = std::filesystem::status(target_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw OutputError(target_.string() + ": it isn't a regular file");
  }
  // A reader that still has an earlier writer's file open keeps that one.
  if (::unlink(name_.c_str()) != 0 && errno != ENOENT) check(errno);
  descriptor_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) check(errno);
}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PartialFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  check(write_at(descriptor_, offset, bytes));
}

void PartialFile::write(std::uint64_t offset, std::span<::iovec> pieces) {
  check(write_at(descriptor_, offset, pieces));
}

void PartialFile::publish() {
  if (::fsync(descriptor_) != 0) check(errno);
  // Some file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) check(errno);
  const int renamed = ::rename(name_.c_str(), target_.c_str()) == 0 ? 0 : errno;
  const int code = renamed != 0 ? renamed : sync_folder_of(target_);
  if (code != 0) throw OutputError(target_.string() + ": " + std::generic_category().message(code));
}

void PartialFile::check(int code) const {
  if (code != 0) throw OutputError(name_.string() + ": " + std::generic_category().message(code));
}

}  // namespace slidestream
