#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

/// \file
/// Folders within a folder that is filled.

namespace slidestream {

/// The folders that a writer makes within its own one, at any depth. Each is opened from the one that it lies in, and
/// never through a link: whatever somebody else puts there meanwhile, files get their names in the writer's folders.
/// Not thread-safe. Members throw OutputError.
class MadeFolders {
 public:
  /// \param name  the folder that they lie in, for error lines.
  explicit MadeFolders(std::filesystem::path name) : name_(std::move(name)) {}

  /// A folder, open for calls such as `renameat` alone.
  class Open {
   public:
    explicit Open(int descriptor) : descriptor_(descriptor) {}
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    int descriptor() const noexcept { return descriptor_; }

   private:
    int descriptor_;
  };

  /// One that was used lately; nothing where it wasn't.
  std::shared_ptr<const Open> find(const std::string& folder);

  /// Opens a folder such as "0/2/10", which is made where it wasn't yet.
  /// \param root  the descriptor of the folder that they lie in
  std::shared_ptr<const Open> open(int root, const std::string& folder);

  /// Makes sure that all are where they were made, and closes them.
  void check(int root);

 private:
  struct Identity {
    dev_t device;
    ino_t inode;
  };
  struct Recent {
    std::string folder;
    std::shared_ptr<const Open> open;
  };
  void make(int parent, const std::string& name, const std::string& folder) const;
  [[noreturn]] void fail(int code, const std::string& folder) const;

  std::filesystem::path name_;
  std::map<std::string, Identity> made_;
  std::list<Recent> recent_;  ///< the last one that was used comes first
};

/// Whether the file system of an open file never changes the number of a file that nobody has open.
bool keeps_inodes(int descriptor) noexcept;

}  // namespace slidestream
