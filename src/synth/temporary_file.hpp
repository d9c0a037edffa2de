#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "sink/final_name.hpp"

/// \file
/// A file that isn't there until it is whole.

namespace slidestream::synth {

/// A new file beside `target`, read and written by position, that is removed unless it is published.
class TemporaryFile {
 public:
  /// \throws OutputError naming `target`.
  explicit TemporaryFile(std::filesystem::path target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// False when the system refuses; `failure()` then says why.
  bool write(std::uint64_t offset, std::span<const std::uint8_t> bytes) noexcept;
  bool read(std::uint64_t offset, std::span<std::uint8_t> bytes) noexcept;

  std::uint64_t size() const noexcept { return size_; }

  /// The first failure's errno; 0 if there was none.
  int failure() const noexcept { return failure_; }

  /// Gives the file its final name, in place of what was there. \throws OutputError.
  void publish();

  /// \throws OutputError with the target's name and the first failure's reason, or else `reason`.
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  std::filesystem::path target_;
  FinalName final_;
  std::filesystem::path name_;
  bool named_ = false;  ///< `name_` is in the folder
  int descriptor_ = -1;
  int failure_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace slidestream::synth
