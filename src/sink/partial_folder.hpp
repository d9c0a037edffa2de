#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// A folder that can be looked at while it is filled, under another name than the one that it gets when it is whole.

namespace slidestream {

/// A new folder, in place of what an earlier writer left under its name, which is refused where it holds something
/// else, as is what has the final name. Who fills it has it locked (flock): another writer is refused. Files appear in
/// it whole, by rename. It stays there unless it is published. Every member but the destructor and `discard` throws
/// OutputError with the name that fails and the system's reason; the constructor Error where the names are taken.
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

  /// Makes a file piece by piece, several at a time if need be: it appears with `complete`.
  void append(const std::string& file, std::span<const std::byte> bytes);
  void complete(const std::string& file);

  /// Makes a file beside the folder, which appears whole as well. It isn't counted in `bytes`.
  void write_beside(const std::filesystem::path& file, std::string_view text);

  /// Makes what was written durable, then gives the folder its final name; one that had it before is removed.
  void publish();

  /// Removes it, where it wasn't published.
  void discard() noexcept;

  /// Of the files in it.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  /// A file that doesn't have its name yet.
  struct Unfinished {
    std::filesystem::path name;
    int descriptor = -1;
    std::uint64_t bytes = 0;
  };
  /// Opens and locks what has the name now; nothing where there is no folder.
  void lock();
  /// That nobody else's files are lost. \param fate  what the folder would be.
  void check_content(const std::filesystem::path& folder, const char* fate);
  void sync_files();
  /// A file's, which is made where there is none.
  Unfinished& unfinished(const std::string& file);
  void give_up(const std::string& file) noexcept;
  void make_folder(const std::filesystem::path& folder);

  std::filesystem::path target_;
  std::filesystem::path name_;
  int lock_ = -1;  ///< the folder, open
  std::mutex mutex_;
  std::filesystem::path made_;                    ///< the folder that was made or used last; guarded by mutex_
  std::map<std::string, Unfinished> unfinished_;  ///< by the name that they get; guarded by mutex_, but for each's own
  std::uint64_t begun_ = 0;                       ///< files; guarded by mutex_
  std::atomic<std::uint64_t> bytes_{0};
  std::vector<std::filesystem::path> beside_;
  bool published_ = false;
};

}  // namespace slidestream
