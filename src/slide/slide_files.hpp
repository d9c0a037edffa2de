#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <slidestream/slide.hpp>
#include <span>
#include <vector>

#include "slide/file.hpp"

namespace slidestream {

/// The files of a slide in one space of offsets: the first begins at 0, and each further one behind the file before it,
/// at a whole MiB. So a place in a slide is one number, whatever the number of files. Immutable while it is read.
class SlideFiles {
 public:
  /// Between files: more than readers read along with what they want, so that no read covers two files.
  static constexpr std::uint64_t gap = std::uint64_t{1} << 20;

  /// Adds a file. \returns the offset of its first byte
  std::uint64_t add(std::unique_ptr<File> file);

  /// A file, and the offset at which it begins.
  struct Place {
    const File& file;
    std::uint64_t begin;
    std::size_t index;  ///< in the order of `add`
  };
  /// The file that an offset lies in or behind. There must be one.
  Place at(std::uint64_t offset) const noexcept;

  std::size_t count() const noexcept { return files_.size(); }
  const File& operator[](std::size_t index) const noexcept { return *files_[index].file; }
  /// Bytes of all files.
  std::uint64_t size() const noexcept;
  /// Whether `length` bytes at `offset` lie inside one file.
  bool contains(std::uint64_t offset, std::uint64_t length) const noexcept;
  /// Reads bytes of one file. \throws what `File::read` does
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// `File::set_retries` of all.
  void set_retries(int retries) noexcept;

 private:
  struct Entry {
    std::uint64_t begin;
    std::unique_ptr<File> file;
  };
  std::vector<Entry> files_;
};

}  // namespace slidestream
