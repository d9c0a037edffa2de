#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>

/// \file
/// The system's calls on files, repeated until they are done. They return 0, or an errno.

struct iovec;

namespace slidestream {

/// All of `bytes` at `offset`.
int write_at(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

/// Pieces one after the other from `offset` on. Changes `pieces`.
int write_at(int descriptor, std::uint64_t offset, std::span<::iovec> pieces) noexcept;

/// Fills `bytes` from `offset`; a file that ends before is EIO.
int read_at(int descriptor, std::uint64_t offset, std::span<std::byte> bytes) noexcept;

/// A file that is open to be read while this lives; a descriptor below 0 where it can't be, and errno says why. Pipes
/// and devices don't make anybody wait.
struct OpenFile {
  explicit OpenFile(const std::filesystem::path& file) noexcept;
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor;
};

/// Makes names in the folder of `file` durable. File systems that don't sync folders (EINVAL) are no failure, nor are
/// folders that can't be opened.
int sync_folder_of(const std::filesystem::path& file) noexcept;

}  // namespace slidestream
