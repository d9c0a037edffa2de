#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace slidestream {

/// The text with '?' for control characters, so that it is one line.
std::string without_control_characters(std::string text);

/// Throws SlideError "PATH: cause": the path exactly as given, so that a caller can strip it, and the cause as one
/// line.
[[noreturn]] void throw_slide_error(const std::filesystem::path& path, const std::string& cause);

/// A regular file open for positional reads; any number of threads may read at the same time.
class File {
 public:
  /// \throws SlideError when it can't be opened or isn't a regular file. Never waits for a FIFO's other end.
  explicit File(const std::filesystem::path& path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  /// Bytes at opening.
  std::uint64_t size() const noexcept { return size_; }

  /// Fills `to` from byte `offset`, or as far as the file goes, and returns the bytes read.
  /// \throws SlideError with the system's reason.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> to) const;

  /// Fills all of `to`. \throws SlideError when the file ends before, or the system fails.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

  /// Whether `length` bytes at `offset` lie inside the file.
  bool contains(std::uint64_t offset, std::uint64_t length) const noexcept {
    return offset <= size_ && length <= size_ - offset;
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace slidestream
