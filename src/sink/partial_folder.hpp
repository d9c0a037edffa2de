#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sink/file_digest.hpp"
#include "sink/final_name.hpp"
#include "sink/made_folders.hpp"

/// \file
/// A folder that can be looked at while it is filled, under another name than the one that it gets when it is whole.

struct iovec;

namespace slidestream {

/// Makes sure that nothing of anybody else is lost under the names of a folder that is filled (`PartialFolder`).
/// \throws Error where what has one is no folder, can't be looked at, or holds what no image's folder does, at any
/// depth.
void check_folder_names(const std::filesystem::path& target, const std::filesystem::path& name);

/// Whether an image's folder may hold all that a folder has, at any depth; not where it can't be looked at.
bool may_be_image_folder(const std::filesystem::path& folder) noexcept;

/// Files in a folder have such names until they are complete.
inline constexpr std::string_view unfinished_begin = ".unfinished-";

/// A new folder, in place of what an earlier writer left under its name, which is refused where it holds something
/// else, as is what has the final name. Who fills it has it locked (flock): another writer is refused. Files appear in
/// it whole, by rename, and never through a link that somebody else puts into it. It stays there unless it is
/// published, or is empty at the end. Every member but the destructor and `discard` throws OutputError with the name
/// that fails and the system's reason; the constructor Error where the names are taken, and InUseError.
class PartialFolder {
 public:
  /// \param target  its final name: a folder, or nothing yet. \param name  the one until then, in the same folder.
  PartialFolder(std::filesystem::path target, std::filesystem::path name);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  /// Makes `file`, a path inside the folder, with all folders on the way. Thread-safe for different files.
  void write(const std::string& file, std::span<const std::byte> bytes);
  void write(const std::string& file, std::string_view text);

  /// Puts another file in the place of one that was written: `bytes` counts the new one alone.
  void replace(const std::string& file, std::string_view text);

  /// Makes a file piece by piece, several at a time if need be: it appears with `complete`.
  void append(const std::string& file, std::span<const std::byte> bytes);
  /// Pieces one after the other. Changes `pieces`.
  void append(const std::string& file, std::span<::iovec> pieces);
  /// Writes over bytes that were appended to a file which isn't complete.
  void overwrite(const std::string& file, std::uint64_t offset, std::span<const std::byte> bytes);
  /// `file_digest` of what was appended to a file which isn't complete; nothing was overwritten.
  std::uint64_t digest_of_unfinished(const std::string& file);
  void complete(const std::string& file);

  /// Makes a file beside the folder, which appears whole as well. It isn't counted in `bytes`. The first one goes last.
  void write_beside(const std::filesystem::path& file, std::string_view text);

  /// Makes what was written durable, then gives the folder its final name; one that had it from the beginning is
  /// removed.
  void publish();

  /// Removes it, where it hasn't its final name, and what was made beside it and wasn't renamed.
  void discard() noexcept;

  /// Calls `write`, which makes the first files, and discards what there is when that fails.
  template <class Write>
  void begin(const Write& write) {
    try {
      write();
    } catch (...) {
      discard();
      throw;
    }
  }

  /// Of the files in it.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  /// `path_content`'s digest of the folder as it was written, most of it without reading it again. No file is being
  /// made.
  std::uint64_t digest() const { return folder_digest(files_); }

 private:
  /// A file that doesn't have its name yet.
  struct Unfinished {
    std::string name;  ///< in the folder
    int descriptor = -1;
    WrittenDigest digest;
  };
  /// Opens and locks what has the name now; nothing where there is no folder.
  void lock();
  void sync_files();
  /// A file's, which is made where there is none.
  Unfinished& unfinished(const std::string& file);
  void give_up(const std::string& file) noexcept;
  /// Makes sure that what has an unfinished file's name is that file.
  void check_name(const std::string& file);
  /// Gives an unfinished file its name.
  void name_file(const std::string& file);
  /// The folder of a file in it; nothing where that is this one, or where the file is beside it.
  std::shared_ptr<const MadeFolders::Open> folder_of(const std::string& file);

  std::filesystem::path target_;
  FinalName final_;
  std::filesystem::path name_;
  int lock_ = -1;  ///< the folder, open
  std::mutex mutex_;
  MadeFolders made_;                              ///< guarded by mutex_
  std::map<std::string, Unfinished> unfinished_;  ///< by the name that they get; guarded by mutex_, but for each's own
  std::uint64_t begun_ = 0;                       ///< files; guarded by mutex_
  std::atomic<std::uint64_t> bytes_{0};
  std::map<std::string, PathContent> files_;  ///< those that are complete; guarded by mutex_
  std::vector<std::filesystem::path> beside_;
};

}  // namespace slidestream
