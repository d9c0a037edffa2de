#include "ledger/private_copy.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// An index of the log is made anew.
constexpr std::array<const char*, 3> copied = {"", "-wal", "-journal"};

/// What tells a file from what it was a moment ago.
struct Look {
  bool is_there = false;
  ::dev_t device = 0;
  ::ino_t number = 0;
  std::int64_t bytes = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;

  bool operator==(const Look&) const = default;
};
using Looks = std::array<Look, copied.size()>;

/// Nothing where one can't be looked at, or isn't a regular file.
std::optional<Looks> look_at(const fs::path& file) {
  Looks looks;
  for (std::size_t i = 0; i < copied.size(); ++i) {
    struct ::stat about {};
    if (::lstat((file.string() + copied[i]).c_str(), &about) != 0) {
      if (errno != ENOENT) return std::nullopt;
      continue;
    }
    if (!S_ISREG(about.st_mode)) return std::nullopt;
    looks[i] = {true, about.st_dev, about.st_ino, about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
  }
  return looks[0].is_there ? std::optional(looks) : std::nullopt;
}

/// A log stays while processes are alive that write or read; a journal while one writes. An empty log, which readers
/// leave, too, is nothing but in the way of who can't remove it.
bool has_left(const fs::path& file, const Looks& looks) {
  const bool may_remove = ::access(file.c_str(), W_OK) == 0;
  return looks[1].bytes > 0 || (looks[1].is_there && !may_remove) || looks[2].bytes > 0;
}

/// Whether a process has SQLite's locks on a file, or that can't be said. A child looks: this process doesn't see its
/// own locks, and would give them up with closing the file.
bool may_be_open(const fs::path& file) {
  const std::string name = file.string();
  const ::pid_t child = ::fork();
  if (child < 0) return true;
  if (child == 0) {
    // Calls that are safe in the child of a process with threads. PENDING, RESERVED and SHARED, as SQLite places them.
    const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct ::flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = 0x40000000;
    lock.l_len = 512;
    const bool is_free = descriptor >= 0 && ::fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
    ::_exit(is_free ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return true;
  }
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

struct Descriptor {
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number;
};

/// Copies so many bytes. \return whether all could be read and written
bool copy_file(const std::string& from, const std::string& to, std::int64_t bytes) {
  const Descriptor in(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const Descriptor out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (in.number < 0 || out.number < 0) return false;
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  while (bytes > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::int64_t>(bytes, std::ssize(buffer)));
    const ::ssize_t got = ::read(in.number, buffer.data(), part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    for (::ssize_t done = 0; done < got;) {
      const ::ssize_t put = ::write(out.number, buffer.data() + done, static_cast<std::size_t>(got - done));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      done += put;
    }
    bytes -= got;
  }
  return true;
}

constexpr std::string_view folder_prefix = "slidestream-ledger-";
constexpr std::string_view folder_end = "XXXXXX";
/// What is in it, under a name that no ledger has. SQLite makes the last one.
constexpr std::string_view copy_name = "copied-ledger.sqlite";
constexpr std::array<std::string_view, 4> left_suffixes = {"", "-wal", "-journal", "-shm"};

/// Takes the lock of a folder. \return its descriptor; -1: another process has it, or it isn't this user's folder
int lock_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return -1;
  struct ::stat about {};
  const bool is_own = ::fstat(descriptor, &about) == 0 && about.st_uid == ::geteuid() && (about.st_mode & 077) == 0;
  if (is_own && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

/// Whether a folder of `make_folder` may have this name.
bool is_folder_name(std::string_view name) {
  return name.starts_with(folder_prefix) && name.size() == folder_prefix.size() + folder_end.size();
}

/// Removes a copy and its folder, unless that holds anything else.
bool remove_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    const bool is_of_copy = std::ranges::any_of(
        left_suffixes, [&](std::string_view suffix) { return name == std::string(copy_name).append(suffix); });
    if (!is_of_copy || !entry->is_regular_file(code) || entry->is_symlink(code)) return false;
    files.push_back(entry->path());
  }
  for (const fs::path& file : files) {
    if (!code) fs::remove(file, code);
  }
  return !code && fs::remove(folder, code);
}

/// Removes some folders of processes that were killed: of this user, and not so new that one may be about to lock it.
void remove_left_folders(const fs::path& temporary) {
  constexpr int most_looked_at = 4096;
  constexpr int most_removed = 16;
  constexpr std::chrono::minutes new_for{1};
  std::error_code code;
  int looked_at = 0;
  int removed = 0;
  for (fs::directory_iterator entry(temporary, code), end;
       !code && entry != end && looked_at < most_looked_at && removed < most_removed; entry.increment(code)) {
    ++looked_at;
    const fs::path& folder = entry->path();
    if (!is_folder_name(folder.filename().string())) continue;
    std::error_code of_entry;
    const auto changed = fs::last_write_time(folder, of_entry);
    if (of_entry || fs::file_time_type::clock::now() - changed < new_for) continue;
    const Descriptor lock(lock_folder(folder));
    if (lock.number < 0) continue;
    if (remove_folder(folder)) ++removed;
  }
}

/// A new folder for a copy of so many bytes, which recovering makes larger; empty: there is none.
fs::path make_folder(std::uint64_t bytes) {
  constexpr std::uint64_t more = std::uint64_t{64} << 20;
  std::error_code code;
  const fs::path temporary = fs::temp_directory_path(code);
  if (code) return {};
  remove_left_folders(temporary);
  const fs::space_info room = fs::space(temporary, code);
  if (code || room.available < 2 * bytes + more) return {};
  std::string name = (temporary / folder_prefix).string().append(folder_end);
  return ::mkdtemp(name.data()) == nullptr ? fs::path() : fs::path(name);
}

}  // namespace

std::unique_ptr<PrivateCopy> PrivateCopy::of_left(const fs::path& file) {
  const std::optional<Looks> before = look_at(file);
  if (!before || !has_left(file, *before)) return nullptr;
  std::uint64_t bytes = 0;
  for (const Look& look : *before) {
    const auto more = static_cast<std::uint64_t>(look.bytes);
    if (more > largest_private_copy - bytes) return nullptr;
    bytes += more;
  }
  if (may_be_open(file)) return nullptr;
  const fs::path folder = make_folder(bytes);
  if (folder.empty()) return nullptr;
  std::unique_ptr<PrivateCopy> copy(new PrivateCopy(folder / copy_name, lock_folder(folder)));
  for (std::size_t i = 0; i < copied.size(); ++i) {
    if (!(*before)[i].is_there) continue;
    if (!copy_file(file.string() + copied[i], copy->file_.string() + copied[i], (*before)[i].bytes)) return nullptr;
  }
  // Somebody may have begun to use it, or even have ended.
  if (may_be_open(file) || look_at(file) != before) return nullptr;
  return copy;
}

void PrivateCopy::remove_names() noexcept {
  std::error_code ignored;
  if (std::exchange(is_removed_, true)) return;
  std::filesystem::remove_all(file_.parent_path(), ignored);
}

PrivateCopy::~PrivateCopy() {
  remove_names();
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace slidestream
