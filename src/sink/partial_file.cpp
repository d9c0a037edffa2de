#include "sink/partial_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <slidestream/error.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "sink/file_calls.hpp"
#include "sink/temporary_name.hpp"
#include "system/denied.hpp"

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

namespace {

/// What can't be replaced is in one file's way; other failures are of the storage, and in the way of all.
[[noreturn]] void fail_to_replace(const std::filesystem::path& name, int code) {
  const std::string reason = std::generic_category().message(code);
  if (code == EISDIR || code == EPERM || code == EBUSY) throw Error(name.string() + ": can't be replaced: " + reason);
  throw OutputError(name.string() + ": " + reason);
}

/// Held while a file is begun in the folder of `file`. Where the file system has no such locks, and where somebody
/// holds one for longer than it takes to begin a file, there is none.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& file) {
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int tries = 0; descriptor_ >= 0 && tries < 1000; ++tries) {
      if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
      ::usleep(1000);
    }
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// Whether a living writer has it open.
bool is_being_written(const std::filesystem::path& file) {
  const int there = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (there < 0) return false;
  const bool locked = ::flock(there, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(there);
  return locked;
}

/// A new folder with a temporary name beside `file`. It goes with this, and all in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& file) {
    while (true) {
      path_ = temporary_name(file);
      if (::mkdir(path_.c_str(), 0777) == 0) return;
      const int code = errno;
      // A process with our number may have died here before.
      if (code != EEXIST) throw OutputError(file.string() + ": " + std::generic_category().message(code));
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// A message about files in a folder, as if they lay beside it.
std::string with_names_beside(const std::filesystem::path& folder, std::string message) {
  const std::string inside = folder.string() + "/";
  const std::string beside = folder.parent_path().string() + "/";
  for (std::size_t at = 0; (at = message.find(inside, at)) != std::string::npos; at += beside.size()) {
    message.replace(at, inside.size(), beside);
  }
  return message;
}

}  // namespace

void check_final_name(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  // A link to a folder is replaced, as others are.
  const bool leads_to_folder = std::filesystem::is_directory(status) &&
                               std::filesystem::is_symlink(std::filesystem::symlink_status(file, ignored));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) && !leads_to_folder) {
    throw Error(file.string() + ": it isn't a regular file");
  }
}

PartialFile::PartialFile(std::filesystem::path target, std::span<const std::byte> first)
    : target_(std::move(target)), final_(target_), name_(partial_name(target_)) {
  check_final_name(target_);
  std::filesystem::path begun;
  do {
    begun = temporary_name(name_);
    descriptor_ = ::open(begun.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    // A process with our number may have died here before.
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) check(errno);
  int code = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 ? errno : 0;
  ::iovec head{const_cast<std::byte*>(first.data()), first.size()};
  if (code == 0) code = write_and_hash(descriptor_, 0, std::span(&head, 1), digest_);
  bool in_use = false;
  int renamed = 0;
  if (code == 0) {
    // Of several that begin at once one is first, and the others find its file locked.
    const FolderLock lock(name_);
    in_use = is_being_written(name_);
    // A reader that still has an earlier writer's file open keeps that one.
    if (!in_use && ::rename(begun.c_str(), name_.c_str()) != 0) renamed = errno;
  }
  if (code == 0 && !in_use && renamed == 0) return;
  ::unlink(begun.c_str());
  ::close(std::exchange(descriptor_, -1));
  check(code);
  if (in_use) throw InUseError(name_.string() + ": somebody is writing it");
  fail_to_replace(name_, renamed);
}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PartialFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  ::iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  write(offset, std::span(&piece, 1));
}

void PartialFile::write(std::uint64_t offset, std::span<::iovec> pieces) {
  check(write_and_hash(descriptor_, offset, pieces, digest_));
}

std::uint64_t PartialFile::digest() const {
  struct stat about {};
  if (::fstat(descriptor_, &about) != 0) check(errno);
  if (static_cast<std::uint64_t>(about.st_size) != digest_.size()) {
    throw OutputError(name_.string() + ": has " + std::to_string(about.st_size) + " bytes, and " +
                      std::to_string(digest_.size()) + " were written");
  }
  const auto digest = digest_.value(descriptor_);
  if (!digest) throw OutputError(name_.string() + ": can't be read again");
  return *digest;
}

bool is_name_of(int descriptor, const std::filesystem::path& name) noexcept {
  struct stat own {};
  struct stat named {};
  return ::fstat(descriptor, &own) == 0 && ::lstat(name.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
         own.st_ino == named.st_ino;
}

void give_name(const std::filesystem::path& name, const std::filesystem::path& target) {
  const int renamed = ::rename(name.c_str(), target.c_str()) == 0 ? 0 : errno;
  const int code = renamed != 0 ? renamed : sync_folder_of(target);
  if (code != 0) throw OutputError(target.string() + ": " + std::generic_category().message(code));
}

void PartialFile::publish() {
  if (!is_name_of(descriptor_, name_)) throw OutputError(name_.string() + ": somebody else wrote under this name");
  if (::fsync(descriptor_) != 0) check(errno);
  // Some file systems report a full disk only here.
  const int code = ::close(std::exchange(descriptor_, -1)) != 0 ? errno : 0;
  try {
    check(code);
    final_.check();
    give_name(name_, target_);
  } catch (const OutputError&) {
    // It is made anew, and needs the room.
    ::unlink(name_.c_str());
    throw;
  }
}

void PartialFile::discard() noexcept {
  if (descriptor_ < 0) return;
  const bool is_ours = is_name_of(descriptor_, name_);
  ::close(std::exchange(descriptor_, -1));
  if (is_ours) ::unlink(name_.c_str());
}

void publish_whole(const std::filesystem::path& file, const std::function<void(const std::filesystem::path&)>& write) {
  const TemporaryFolder folder(file);
  const std::filesystem::path made = folder.path() / file.filename();
  try {
    write(made);
    const int descriptor = ::open(made.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int code = descriptor < 0 || ::fsync(descriptor) != 0 ? errno : 0;
    if (descriptor >= 0 && ::close(descriptor) != 0 && code == 0) code = errno;
    if (code != 0) throw OutputError(file.string() + ": " + std::generic_category().message(code));
    give_name(made, file);
  } catch (const OutputError& error) {
    throw OutputError(with_names_beside(folder.path(), error.what()));
  }
}

void PartialFile::check(int code) const {
  if (code != 0) throw OutputError(name_.string() + ": " + reason_of(code, name_));
}

}  // namespace slidestream
