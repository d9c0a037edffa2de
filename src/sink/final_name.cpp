#include "sink/final_name.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <slidestream/error.hpp>
#include <system_error>
#include <utility>

#include "system/there.hpp"

namespace slidestream {

FinalName::FinalName(std::filesystem::path path) : path_(std::move(path)) {
  int code = 0;
  first_ = identity(code);
}

void FinalName::check() const {
  int code = 0;
  const auto now = identity(code);
  if (code != 0) {
    throw OutputError(path_.string() + ": can't be looked at: " + std::generic_category().message(code));
  }
  if (!now || (first_ && now->may_be(*first_))) return;
  throw OutputError(path_.string() + ": somebody else put it there while it was being made: it stays");
}

std::optional<FinalName::Identity> FinalName::identity(int& code) const noexcept {
  struct ::statx about {};
  code = 0;
  if (::statx(AT_FDCWD, path_.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &about) == 0) {
    Identity found = {::makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino};
    if ((about.stx_mask & STATX_BTIME) != 0) found.made.emplace(about.stx_btime.tv_sec, about.stx_btime.tv_nsec);
    return found;
  }
  // Some containers have no such call.
  struct ::stat status {};
  if (::lstat(path_.c_str(), &status) == 0) return Identity{status.st_dev, status.st_ino};
  if (!says_absent({errno, std::generic_category()})) code = errno;
  return std::nullopt;
}

}  // namespace slidestream
