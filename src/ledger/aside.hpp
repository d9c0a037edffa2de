#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// \file
/// How files of an earlier run are moved out of a folder of results.

namespace slidestream {

/// Makes the names in a folder durable. \throws OutputError
void sync_folder(const std::filesystem::path& folder);

/// Held while a process looks whose a folder of results is and makes it its own, or moves results aside. Others wait.
/// It lies on the folder itself, which no move takes away. Nothing is held where the file system has no such locks.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder) noexcept;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

/// Whether a process may hold the folder's `FolderLock`: also where that can't be said.
bool may_be_claimed(const std::filesystem::path& folder) noexcept;

/// Whether files are being moved out of the folder, or that was interrupted. \throws OutputError where that can't be
/// said
bool is_moving_aside(const std::filesystem::path& folder);

/// Moves files from a folder into its folder `earlier-N`: all of them, or none. Until all are moved they lie in a
/// folder with another name, which a kill leaves: the next move goes on with it. Who moves holds the `FolderLock`.
class MoveAside {
 public:
  /// \throws OutputError
  explicit MoveAside(std::filesystem::path folder);
  /// Puts back what was moved, unless `end` did its work.
  ~MoveAside();
  MoveAside(const MoveAside&) = delete;
  MoveAside& operator=(const MoveAside&) = delete;

  /// Whether it goes on with a move that was interrupted.
  bool is_continued() const noexcept { return is_continued_; }
  /// Whether a file has been moved. \throws OutputError where that can't be said
  bool has(const std::filesystem::path& name) const;

  /// \param name  of a file or folder, relative to the folder; nothing happens where there is none. A link moves, and
  /// what it leads to stays. \throws OutputError
  void move(const std::filesystem::path& name);

  /// Moves what says that there is a run, after everything else is durable, and gives the folder its name. Returns
  /// that; empty where there was nothing. \throws OutputError
  std::string end(const std::vector<std::filesystem::path>& last);

 private:
  struct Moved {
    std::filesystem::path name;
    std::optional<std::filesystem::path> leads_to;  ///< of a link, where it was
  };
  /// In the staging folder. It goes again with what is in `moved_`.
  void make_folder_of(const std::filesystem::path& name) const;
  void move_link(const std::filesystem::path& name);
  void put_back(const Moved& moved) const noexcept;

  std::filesystem::path folder_;
  std::filesystem::path staging_;
  bool is_continued_ = false;
  std::vector<Moved> moved_;  ///< the last one may not have been moved
};

}  // namespace slidestream
