#include "sink/partial_folder.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <slidestream/error.hpp>
#include <system_error>
#include <utility>

#include "sink/file_calls.hpp"
#include "sink/image_formats.hpp"
#include "sink/partial_file.hpp"
#include "sink/stray_files.hpp"
#include "system/denied.hpp"

namespace slidestream {

namespace {

void check_call(int code, const std::filesystem::path& name) {
  if (code != 0) throw OutputError(name.string() + ": " + reason_of(code, name));
}

void check_call(const std::error_code& code, const std::filesystem::path& name) { check_call(code.value(), name); }

/// Makes a file's content, or a folder's names durable. \param about  what it is
int sync_path(const std::filesystem::path& path, struct ::stat& about) noexcept {
  // A pipe isn't waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return errno;
  const int code = ::fsync(descriptor) != 0 || ::fstat(descriptor, &about) != 0 ? errno : 0;
  ::close(descriptor);
  return code;
}

int sync_path(const std::filesystem::path& path) noexcept {
  struct ::stat about {};
  return sync_path(path, about);
}

/// What a folder is called while it is removed.
std::filesystem::path earlier(const std::filesystem::path& name) { return name.string() + ".earlier"; }

constexpr std::string_view beside = "../";

/// The path of a file in a folder, or beside it ("../NAME").
std::filesystem::path path_in(const std::filesystem::path& folder, const std::string& file) {
  return file.starts_with(beside) ? folder.parent_path() / file.substr(beside.size()) : folder / file;
}

/// \param pattern  where `#` stands for digits
bool is_like(std::string_view name, std::string_view pattern) {
  for (const char c : pattern) {
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (c == '#' ? digits == 0 : !name.starts_with(c)) return false;
    name.remove_prefix(c == '#' ? digits : 1);
  }
  return name.empty();
}

/// Whether an image's folder, of any format, may hold it: a level's folder, or a file of the format's. So it may stray
/// files, which go with the folder.
bool may_be_of_image(const std::filesystem::directory_entry& entry, int depth) {
  const std::string name = entry.path().filename().string();
  std::error_code code;
  if (name.starts_with('.') || is_stray_file(entry)) return true;
  if (depth == 0 && is_like(name, "#") && entry.is_directory(code)) return true;
  const auto is_like_name = [&name](std::string_view pattern) { return is_like(name, pattern); };
  return std::ranges::any_of(image_formats(), [&](const ImageFormatTraits& format) {
    return std::ranges::any_of(depth == 0 ? format.files : format.level_files, is_like_name);
  });
}

/// The first path in it that no image's folder holds, at any depth; empty: there is none. Links aren't followed.
std::string foreign_entry(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::recursive_directory_iterator entry(folder, code);
  for (; !code && entry != std::filesystem::recursive_directory_iterator(); entry.increment(code)) {
    if (!may_be_of_image(*entry, entry.depth())) return entry->path().lexically_relative(folder).string();
    if (entry->path().filename().string().starts_with('.')) entry.disable_recursion_pending();
  }
  // Who writes in it may give it its final name meanwhile.
  if (code && code != std::errc::no_such_file_or_directory) {
    throw Error(folder.string() + ": " + reason_of(code.value(), folder));
  }
  return {};
}

/// Gives a folder the name of another, which then has the name of the first.
int trade_names(const std::filesystem::path& name, const std::filesystem::path& target) noexcept {
  if (::renameat2(AT_FDCWD, name.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // File systems that can't: nothing has the final name for a moment.
  const std::filesystem::path aside = earlier(name);
  std::error_code code;
  std::filesystem::remove_all(aside, code);
  if (::rename(target.c_str(), aside.c_str()) != 0) return errno;
  if (::rename(name.c_str(), target.c_str()) != 0) {
    const int cause = errno;
    // The earlier folder keeps its name.
    return ::rename(aside.c_str(), target.c_str()) != 0 ? errno : cause;
  }
  return ::rename(aside.c_str(), name.c_str()) != 0 ? errno : 0;
}

/// Removes a folder. Parts of it never have its name: they may lack what says whose they are.
void remove_folder(const std::filesystem::path& name) noexcept {
  const std::filesystem::path aside = earlier(name);
  std::error_code ignored;
  std::filesystem::remove_all(::rename(name.c_str(), aside.c_str()) == 0 ? aside : name, ignored);
}

}  // namespace

bool may_be_image_folder(const std::filesystem::path& folder) noexcept {
  try {
    return foreign_entry(folder).empty();
  } catch (const std::exception&) {
    return false;
  }
}

void check_folder_names(const std::filesystem::path& target, const std::filesystem::path& name) {
  const std::filesystem::path aside = earlier(name);
  for (const auto& [there, fate] : {std::pair(&target, "replaced"), {&name, "emptied"}, {&aside, "removed"}}) {
    std::error_code code;
    const auto status = std::filesystem::symlink_status(*there, code);
    if (!std::filesystem::exists(status)) continue;
    if (!std::filesystem::is_directory(status)) throw Error(there->string() + ": it isn't a folder");
    const std::string entry = foreign_entry(*there);
    if (entry.empty()) continue;
    throw Error(there->string() + ": it would be " + fate + ", and holds " + entry + ", which is of no image");
  }
}

PartialFolder::PartialFolder(std::filesystem::path target, std::filesystem::path name)
    : target_(std::move(target)), final_(target_), name_(std::move(name)), made_(name_) {
  std::error_code code;
  check_folder_names(target_, name_);
  // What an earlier writer left: nothing that is being written.
  lock();
  const std::filesystem::path aside = earlier(name_);
  std::filesystem::remove_all(aside, code);
  check_call(code, aside);
  if (lock_ >= 0) {
    // An image of which parts are gone must not have the name.
    const int moved = ::rename(name_.c_str(), aside.c_str()) != 0 ? errno : 0;
    ::close(std::exchange(lock_, -1));
    check_call(moved, name_);
    std::filesystem::remove_all(aside, code);
    check_call(code, aside);
  }
  std::filesystem::create_directory(name_, code);
  check_call(code, name_);
  lock();
  if (lock_ < 0) check_call(errno, name_);
}

void PartialFolder::lock() {
  lock_ = ::open(name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(std::exchange(lock_, -1));
  throw InUseError(name_.string() + ": somebody is writing it");
}

PartialFolder::~PartialFolder() {
  while (!unfinished_.empty()) give_up(std::string(unfinished_.begin()->first));
  if (lock_ < 0) return;
  // One with files in it isn't removed so.
  if (is_name_of(lock_, name_)) ::rmdir(name_.c_str());
  ::close(lock_);
}

std::shared_ptr<const MadeFolders::Open> PartialFolder::folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string::npos || file.starts_with(beside)) return nullptr;
  const std::string folder = file.substr(0, slash);
  const std::lock_guard lock(mutex_);
  if (auto there = made_.find(folder)) return there;
  // Moved away, it isn't begun again where it was.
  if (!is_name_of(lock_, name_)) throw OutputError(name_.string() + ": somebody moved or replaced it");
  return made_.open(lock_, folder);
}

void PartialFolder::write(const std::string& file, std::span<const std::byte> bytes) {
  append(file, bytes);
  name_file(file);
}

PartialFolder::Unfinished& PartialFolder::unfinished(const std::string& file) {
  const std::lock_guard lock(mutex_);
  Unfinished& begun = unfinished_[file];
  if (begun.name.empty()) begun.name = std::string(unfinished_begin) + std::to_string(begun_++);
  return begun;
}

void PartialFolder::append(const std::string& file, std::span<const std::byte> bytes) {
  ::iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  append(file, std::span(&piece, 1));
}

void PartialFolder::append(const std::string& file, std::span<::iovec> pieces) {
  Unfinished& begun = unfinished(file);
  int code = 0;
  if (begun.descriptor < 0) {
    begun.descriptor = ::openat(lock_, begun.name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (begun.descriptor < 0) code = errno;
    if (code == EEXIST) {
      const std::filesystem::path there = name_ / begun.name;
      const std::lock_guard lock(mutex_);
      unfinished_.erase(file);
      throw OutputError(there.string() + ": somebody else put it there");
    }
  }
  if (code == 0) code = write_and_hash(begun.descriptor, begun.digest.size(), pieces, begun.digest);
  if (code != 0) give_up(file);
  check_call(code, path_in(name_, file));
}

void PartialFolder::overwrite(const std::string& file, std::uint64_t offset, std::span<const std::byte> bytes) {
  Unfinished& begun = unfinished(file);
  ::iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const int code = write_and_hash(begun.descriptor, offset, std::span(&piece, 1), begun.digest);
  if (code != 0) give_up(file);
  check_call(code, path_in(name_, file));
}

std::uint64_t PartialFolder::digest_of_unfinished(const std::string& file) {
  const Unfinished& begun = unfinished(file);
  // Nothing is read for it.
  return begun.digest.value(begun.descriptor).value();
}

void PartialFolder::complete(const std::string& file) {
  check_name(file);
  name_file(file);
}

void PartialFolder::check_name(const std::string& file) {
  const Unfinished& begun = unfinished(file);
  struct ::stat own {};
  struct ::stat named {};
  if (::fstat(begun.descriptor, &own) == 0 && ::fstatat(lock_, begun.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      own.st_dev == named.st_dev && own.st_ino == named.st_ino) {
    return;
  }
  const std::filesystem::path there = name_ / begun.name;
  // What has the name stays.
  {
    const std::lock_guard lock(mutex_);
    ::close(begun.descriptor);
    unfinished_.erase(file);
  }
  throw OutputError(there.string() + ": somebody moved or replaced it");
}

void PartialFolder::name_file(const std::string& file) {
  Unfinished& begun = unfinished(file);
  const std::filesystem::path path = path_in(name_, file);
  std::shared_ptr<const MadeFolders::Open> folder;
  try {
    folder = folder_of(file);
  } catch (...) {
    give_up(file);
    throw;
  }
  const auto digest = begun.digest.value(begun.descriptor);
  if (!digest) {
    give_up(file);
    throw OutputError(path.string() + ": can't be read again");
  }
  // Its way to storage begins now, so that nobody waits for it long at the end; whether it gets there is asked then.
  ::sync_file_range(begun.descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
  // Some file systems report a full disk only here.
  int code = ::close(std::exchange(begun.descriptor, -1)) != 0 ? errno : 0;
  if (code == 0) {
    const int target = folder ? folder->descriptor() : file.starts_with(beside) ? AT_FDCWD : lock_;
    const std::string name = target == AT_FDCWD ? path.string() : path.filename().string();
    if (::renameat(lock_, begun.name.c_str(), target, name.c_str()) != 0) code = errno;
  }
  if (code != 0) give_up(file);
  check_call(code, path);
  bytes_ += begun.digest.size();
  const std::lock_guard lock(mutex_);
  files_[file] = {begun.digest.size(), *digest};
  unfinished_.erase(file);
}

/// What was begun of a file would only be in the way.
void PartialFolder::give_up(const std::string& file) noexcept {
  const std::lock_guard lock(mutex_);
  const Unfinished& begun = unfinished_.at(file);
  if (begun.descriptor >= 0) ::close(begun.descriptor);
  ::unlinkat(lock_, begun.name.c_str(), 0);
  unfinished_.erase(file);
}

void PartialFolder::write(const std::string& file, std::string_view text) {
  write(file, std::as_bytes(std::span(text)));
}

void PartialFolder::replace(const std::string& file, std::string_view text) {
  std::error_code code;
  const std::uint64_t before = std::filesystem::file_size(name_ / file, code);
  check_call(code, name_ / file);
  write(file, text);
  bytes_ -= before;
}

void PartialFolder::write_beside(const std::filesystem::path& file, std::string_view text) {
  const std::uint64_t before = bytes_;
  write("../" + file.filename().string(), text);
  bytes_ = before;
  files_.erase("../" + file.filename().string());
  beside_.push_back(file);
}

void PartialFolder::sync_files() {
  std::error_code code;
  std::filesystem::recursive_directory_iterator entry(name_, code);
  check_call(code, name_);
  std::size_t files = 0;
  while (entry != std::filesystem::recursive_directory_iterator()) {
    // Somebody else's may go at any time.
    if (!is_stray_file(*entry)) {
      struct ::stat about {};
      const int failed = sync_path(entry->path(), about);
      if (failed == ELOOP) throw OutputError(entry->path().string() + ": somebody else put a link there");
      check_call(failed, entry->path());
      const auto written =
          S_ISREG(about.st_mode) ? files_.find(entry->path().string().substr(name_.string().size() + 1)) : files_.end();
      if (written != files_.end()) {
        if (static_cast<std::uint64_t>(about.st_size) != written->second.bytes) {
          throw OutputError(entry->path().string() + ": somebody else changed or replaced it");
        }
        ++files;
      }
    }
    entry.increment(code);
    check_call(code, name_);
  }
  if (files != files_.size()) throw OutputError(name_.string() + ": somebody else moved or removed files in it");
  check_call(sync_path(name_), name_);
}

void PartialFolder::publish() {
  if (!is_name_of(lock_, name_)) throw OutputError(name_.string() + ": somebody else wrote under this name");
  made_.check(lock_);
  sync_files();
  for (const std::filesystem::path& file : beside_) check_call(sync_path(file), file);
  final_.check();
  if (::rename(name_.c_str(), target_.c_str()) != 0) {
    int code = errno;
    const bool there = code == ENOTEMPTY || code == EEXIST;
    if (there) code = trade_names(name_, target_);
    check_call(code, target_);
    remove_folder(name_);
  }
  check_call(sync_folder_of(target_), target_);
}

void PartialFolder::discard() noexcept {
  std::error_code ignored;
  if (is_name_of(lock_, name_) && may_be_image_folder(name_)) remove_folder(name_);
  for (auto file = beside_.rbegin(); file != beside_.rend(); ++file) std::filesystem::remove(*file, ignored);
}

}  // namespace slidestream
