#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

/// \file
/// What a dead process left of a ledger, for who reads it.

namespace slidestream {

/// Larger ledgers aren't copied.
inline constexpr std::uint64_t largest_private_copy = std::uint64_t{512} << 20;

/// A copy of a database, with the journal or log that a dead process left beside it, in a folder of temporary files
/// that only this user may enter. SQLite recovers the copy, and what was left stays as it is. The folder is locked
/// while its process is alive; making one removes some of those that killed processes left.
class PrivateCopy {
 public:
  /// Of a database on a disk of this machine. Null where nothing was left beside it, a process has it open or opened it
  /// meanwhile, it can't be read, it is too large, or there is no room: then it is for who opens it in its place to
  /// say.
  static std::unique_ptr<PrivateCopy> of_left(const std::filesystem::path& file);

  ~PrivateCopy();
  PrivateCopy(const PrivateCopy&) = delete;
  PrivateCopy& operator=(const PrivateCopy&) = delete;

  const std::filesystem::path& file() const noexcept { return file_; }

  /// Removes the names of its files. Who has them open, and has recovered them, needs no names.
  void remove_names() noexcept;

 private:
  PrivateCopy(std::filesystem::path file, int lock) : file_(std::move(file)), lock_(lock) {}

  std::filesystem::path file_;
  int lock_;  ///< descriptor of the folder
  bool is_removed_ = false;
};

}  // namespace slidestream
