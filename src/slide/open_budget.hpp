#pragma once

#include <cstdint>
#include <filesystem>
#include <slidestream/slide.hpp>
#include <string>

namespace slidestream {

/// What opening one slide may take, over all its directories. Directories and tables may share bytes of the file, so
/// that a few kilobytes could otherwise ask for any work: each place of the file is paid for whenever it is read.
class OpenBudget {
 public:
  static constexpr std::uint64_t most_directories = 4096;
  static constexpr std::uint64_t most_entries = std::uint64_t{1} << 17;
  static constexpr std::uint64_t most_entries_of_directory = 1024;
  static constexpr std::size_t most_levels = 64;
  static constexpr std::uint64_t most_description = std::uint64_t{1} << 22;  ///< bytes; what is behind isn't read
  static constexpr std::uint64_t xml_tree_factor = 20;  ///< what a text takes as a tree of XML, at most about
  static constexpr std::uint64_t spare_bytes = std::uint64_t{1} << 24;  ///< to read besides the file's size
  static constexpr double most_seconds = 10.0;

  /// `seconds`: of the calling thread's processor time.
  OpenBudget(const std::filesystem::path& path, std::uint64_t file_size, const OpenOptions& options,
             double seconds = most_seconds);

  // Each throws SlideError that names the bound, and StoppedError when `OpenOptions::give_up` says so.

  /// One more directory.
  void take_directory(std::uint64_t entries);
  /// One more level.
  void take_level(std::uint64_t tiles);
  /// Before so many bytes are read.
  void take_bytes(std::uint64_t bytes);

  /// Time alone.
  void check() const;

 private:
  [[noreturn]] void refuse(const std::string& cause) const;

  const std::filesystem::path& path_;
  const OpenOptions& options_;
  double seconds_;
  double begin_;
  std::uint64_t bytes_left_;
  std::uint64_t directories_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t tiles_ = 0;
  std::size_t levels_ = 0;
};

}  // namespace slidestream
