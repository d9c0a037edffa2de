#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <slidestream/error.hpp>
#include <span>
#include <string>

namespace slidestream {

/// The text with '?' for control characters, so that it is one line.
std::string without_control_characters(std::string text);

/// Throws SlideError "PATH: cause": the path exactly as given, so that a caller can strip it, and the cause as one
/// line.
[[noreturn]] void throw_slide_error(const std::filesystem::path& path, const std::string& cause);

/// Throws StoppedError "PATH: WHAT when the run gave it up".
[[noreturn]] void throw_stopped(const std::filesystem::path& path, const std::string& what);

/// Throws SlideError "PATH: WHAT: the system's reason"; StorageError, or DescriptorError, when that may pass.
[[noreturn]] void throw_system_error(const std::filesystem::path& path, const std::string& what, int error);

/// What a file is that isn't a regular one, such as "a FIFO".
const char* kind_of_file(mode_t mode);

/// The system has no descriptor left to open a slide with: no fault of the slide or its storage.
class DescriptorError : public StorageError {
 public:
  using StorageError::StorageError;
};

/// How long the retry after so many is waited for.
std::chrono::milliseconds pause_before_retry(int attempt) noexcept;

/// A regular file open for positional reads; any number of threads may read at the same time.
class File {
 public:
  /// `retries`: how often opening and reading are tried again after an error of storage that may pass (EIO, ESTALE,
  /// ETIMEDOUT, EMFILE, ENFILE), first after 0.1 s and then twice as long each time, at most 30 s. \throws SlideError
  /// when it can't be opened or isn't a regular file, StorageError when that may pass. Never waits for a FIFO's other
  /// end.
  /// `give_up`: asked by any thread that waits for a retry; true: there are no more. May be empty.
  explicit File(const std::filesystem::path& path, int retries = 0, std::function<bool()> give_up = {});
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// From now on. Not while it is read.
  void set_retries(int retries) noexcept { retries_ = retries; }

  const std::filesystem::path& path() const noexcept { return path_; }
  /// Bytes at opening.
  std::uint64_t size() const noexcept { return size_; }

  /// Fills `to` from byte `offset`, or as far as the file goes, and returns the bytes read.
  /// \throws SlideError with the system's reason, StorageError when that may pass.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> to) const;

  /// Fills all of `to`. \throws SlideError when the file ends before, or the system fails.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

  /// For reads of callers' own, which begin where `read` does: a file that is replaced meanwhile stays this one. What
  /// fails there `read` tries again and names the cause.
  int descriptor() const noexcept { return descriptor_; }

  /// What offsets, lengths and addresses of reads past the system's cache are multiples of, in bytes.
  static constexpr std::size_t direct_block = 4096;
  /// A descriptor whose reads go past the system's cache (O_DIRECT), opened by the first call; -1 where the file system
  /// has none, or wants larger blocks. Thread-safe.
  int direct_descriptor() const noexcept;
  /// One read of the system's, which may be short; what it returns, or minus the error.
  static std::int64_t read_once(int descriptor, std::uint64_t offset, std::span<std::byte> to) noexcept;

  /// Whether `length` bytes at `offset` lie inside the file.
  bool contains(std::uint64_t offset, std::uint64_t length) const noexcept {
    return offset <= size_ && length <= size_ - offset;
  }

 private:
  /// Waits for the next retry; false: there is none.
  bool wait_for_retry(int attempt) const;
  /// `read_once` after `error`, which may pass, through a descriptor of its own each time: one that is stale stays so.
  std::int64_t read_again(int error, std::uint64_t offset, std::span<std::byte> to) const;

  std::filesystem::path path_;
  int retries_ = 0;
  std::function<bool()> give_up_;
  int descriptor_ = -1;
  mutable std::once_flag direct_once_;
  mutable int direct_descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::int64_t modified_ = 0;  ///< nanoseconds since 1970
};

}  // namespace slidestream
