#include "ledger/aside.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <slidestream/error.hpp>
#include <system_error>
#include <utility>

#include "system/denied.hpp"
#include "system/there.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// What has been moved lies here until all has been.
constexpr const char* staging_name = ".slidestream-earlier";

[[noreturn]] void fail_at(const fs::path& path, const std::error_code& code) {
  throw OutputError(path.string() + ": " + reason_of(code.value(), path));
}

void check_at(const fs::path& path, const std::error_code& code) {
  if (code) fail_at(path, code);
}

}  // namespace

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int synced = descriptor < 0 ? -1 : ::fsync(descriptor);
  const int code = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (synced != 0 && code != EINVAL) fail_at(folder, std::error_code(code, std::generic_category()));
}

bool is_moving_aside(const fs::path& folder) { return has_entry(folder / staging_name); }

FolderLock::FolderLock(const fs::path& folder) noexcept
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) return;
  while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool may_be_claimed(const fs::path& folder) noexcept {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return true;
  const bool is_free = ::flock(descriptor, LOCK_SH | LOCK_NB) == 0;
  ::close(descriptor);
  return !is_free;
}

MoveAside::MoveAside(fs::path folder) : folder_(std::move(folder)), staging_(folder_ / staging_name) {
  std::error_code code;
  is_continued_ = !fs::create_directory(staging_, code);
  check_at(staging_, code);
  if (entry_at(staging_) != fs::file_type::directory) throw OutputError(staging_.string() + ": isn't a folder");
}

MoveAside::~MoveAside() {
  while (!moved_.empty()) {
    put_back(moved_.back());
    moved_.pop_back();
  }
  // What an earlier start moved stays for the next one.
  ::rmdir(staging_.c_str());
}

bool MoveAside::has(const fs::path& name) const { return has_entry(staging_ / name); }

void MoveAside::put_back(const Moved& moved) const noexcept {
  try {
    std::error_code ignored;
    const fs::path from = staging_ / moved.name;
    const fs::path to = folder_ / moved.name;
    fs::create_directories(to.parent_path(), ignored);
    if (moved.leads_to) {
      fs::create_symlink(*moved.leads_to, to, ignored);
      fs::remove(from, ignored);
    } else {
      fs::rename(from, to, ignored);
    }
    for (fs::path empty = from.parent_path(); empty != staging_; empty = empty.parent_path()) ::rmdir(empty.c_str());
  } catch (const std::exception&) {
    // It lies in the staging folder, and the next start goes on.
  }
}

void MoveAside::make_folder_of(const fs::path& name) const {
  const fs::path folder = (staging_ / name).parent_path();
  std::error_code code;
  fs::create_directories(folder, code);
  check_at(folder, code);
}

void MoveAside::move_link(const fs::path& name) {
  const fs::path from = folder_ / name;
  std::error_code code;
  const fs::path leads_to = fs::read_symlink(from, code);
  check_at(from, code);
  fs::path seen_from_there = leads_to;
  // As many folders up as it moves down.
  if (leads_to.is_relative()) seen_from_there = fs::path("..") / leads_to;
  moved_.push_back({name, leads_to});
  make_folder_of(name);
  fs::create_symlink(seen_from_there, staging_ / name, code);
  check_at(from, code);
  fs::remove(from, code);
  check_at(from, code);
}

void MoveAside::move(const fs::path& name) {
  const fs::path from = folder_ / name;
  const fs::path to = staging_ / name;
  const fs::file_type type = entry_at(from);
  if (type == fs::file_type::not_found || *name.begin() == staging_name) return;
  std::error_code code;
  const bool is_folder = type == fs::file_type::directory;
  if (is_folder && entry_at(to) == fs::file_type::directory) {
    // An interrupted move has begun with it.
    for (const fs::path& each : names_in(from)) move(name / each);
    ::rmdir(from.c_str());
    return;
  }
  if (has_entry(to)) throw OutputError(to.string() + ": is there already");
  if (type == fs::file_type::symlink) return move_link(name);
  moved_.push_back({name, std::nullopt});
  make_folder_of(name);
  fs::rename(from, to, code);
  check_at(from, code);
}

std::string MoveAside::end(const std::vector<fs::path>& last) {
  sync_folder(staging_);
  sync_folder(folder_);
  for (const fs::path& name : last) move(name);
  std::error_code code;
  const bool is_empty = fs::is_empty(staging_, code);
  check_at(staging_, code);
  if (is_empty) return {};
  sync_folder(staging_);
  sync_folder(folder_);
  fs::path aside;
  for (int number = 1; aside.empty() || has_entry(aside); ++number) {
    aside = folder_ / ("earlier-" + std::to_string(number));
  }
  fs::rename(staging_, aside, code);
  check_at(staging_, code);
  moved_.clear();
  sync_folder(folder_);
  return aside.string();
}

}  // namespace slidestream
