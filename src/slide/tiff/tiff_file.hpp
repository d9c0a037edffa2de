#pragma once

#include <tiffio.h>

#include <cstdint>
#include <memory>
#include <string>

#include "slide/file.hpp"

namespace slidestream {

struct TiffClient;

/// A libtiff handle that reads through our own positional reads (no mapping, no shared offset), allocates no more than
/// allowed in one piece, and keeps its messages instead of printing them. One thread at a time.
class TiffFile {
 public:
  /// Bytes that libtiff may read to make a directory the current one, all its values together.
  static constexpr std::uint64_t most_directory_bytes = std::uint64_t{1} << 24;

  /// Opens the header only; `set_directory` comes next. `largest_allocation` bounds each single allocation of libtiff,
  /// in bytes, and `most_read` what it reads: a value that it can't read it leaves out. \throws StorageError if a read
  /// failed for a cause that may pass, else SlideError with libtiff's reason.
  TiffFile(const File& file, std::uint64_t largest_allocation, std::uint64_t most_read = most_directory_bytes);
  ~TiffFile();
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  /// Makes the directory at this byte the current one. False when libtiff can't read it: `message` says why.
  /// \throws StorageError if a read failed meanwhile: libtiff leaves out a tag that it could not read.
  bool set_directory(std::uint64_t offset);

  TIFF* get() const noexcept { return tiff_; }
  std::uint64_t bytes_read() const noexcept;

  /// libtiff's first error since `clear_message`: one line, without the file's path.
  std::string message() const;
  bool has_message() const noexcept;
  void clear_message();

 private:
  void throw_read_failure() const;

  std::unique_ptr<TiffClient> client_;
  TIFF* tiff_ = nullptr;
};

}  // namespace slidestream
