#include "sink/made_folders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <slidestream/error.hpp>

#include "system/denied.hpp"

namespace slidestream {

namespace {

/// Folders that stay open: those of a row of three channels, with the ones that these lie in.
constexpr std::size_t most_open = 8;

}  // namespace

bool keeps_inodes(int descriptor) noexcept {
  // ext4, XFS, Btrfs, tmpfs, NFS, ZFS, Lustre, GPFS, F2FS, CephFS. FUSE, SMB and overlays may count files anew.
  constexpr std::array<std::uint32_t, 10> those = {0xEF53,     0x58465342, 0x9123683E, 0x01021994, 0x6969,
                                                   0x2FC12FC1, 0x0BD00BD0, 0x47504653, 0xF2F52010, 0x00C36400};
  struct ::statfs about {};
  return ::fstatfs(descriptor, &about) == 0 &&
         std::find(those.begin(), those.end(), static_cast<std::uint32_t>(about.f_type)) != those.end();
}

MadeFolders::Open::~Open() { ::close(descriptor_); }

void MadeFolders::fail(int code, const std::string& folder) const {
  const std::filesystem::path path = name_ / folder;
  if (code == ELOOP || code == ENOTDIR || code == EEXIST || code == ENOTEMPTY || code == ENOENT) {
    throw OutputError(path.string() + ": somebody moved it, or put something else there");
  }
  throw OutputError(path.string() + ": " + reason_of(code, path));
}

std::shared_ptr<const MadeFolders::Open> MadeFolders::find(const std::string& folder) {
  for (auto each = recent_.begin(); each != recent_.end(); ++each) {
    if (each->folder != folder) continue;
    recent_.splice(recent_.begin(), recent_, each);
    return recent_.front().open;
  }
  return nullptr;
}

void MadeFolders::make(int parent, const std::string& name, const std::string& folder) const {
  if (::mkdirat(parent, name.c_str(), 0777) == 0) return;
  if (errno != EEXIST) fail(errno, folder);
  // An empty one may be ours: a server that was asked twice says so. Anything else stays.
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 || ::mkdirat(parent, name.c_str(), 0777) != 0) {
    fail(errno, folder);
  }
}

std::shared_ptr<const MadeFolders::Open> MadeFolders::open(int root, const std::string& folder) {
  if (auto there = find(folder)) return there;
  const std::size_t slash = folder.rfind('/');
  const bool is_top = slash == std::string::npos;
  const auto parent = is_top ? nullptr : open(root, folder.substr(0, slash));
  const int in = is_top ? root : parent->descriptor();
  const std::string name = is_top ? folder : folder.substr(slash + 1);
  const auto made = made_.find(folder);
  if (made == made_.end()) make(in, name, folder);
  const int descriptor = ::openat(in, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) fail(errno, folder);
  auto opened = std::make_shared<const Open>(descriptor);
  struct ::stat about {};
  if (::fstat(descriptor, &about) != 0) fail(errno, folder);
  if (made == made_.end()) {
    made_[folder] = {about.st_dev, about.st_ino};
  } else if ((about.st_dev != made->second.device || about.st_ino != made->second.inode) && keeps_inodes(descriptor)) {
    fail(EEXIST, folder);
  }
  recent_.push_front({folder, opened});
  if (recent_.size() > most_open) recent_.pop_back();
  return opened;
}

void MadeFolders::check(int root) {
  recent_.clear();
  const bool same = keeps_inodes(root);
  // The folders that one lies in come before it.
  for (const auto& [folder, made] : made_) {
    struct ::stat about {};
    if (::fstatat(root, folder.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) fail(errno, folder);
    if (!S_ISDIR(about.st_mode)) fail(ENOTDIR, folder);
    if (same && (about.st_dev != made.device || about.st_ino != made.inode)) fail(EEXIST, folder);
  }
}

}  // namespace slidestream
