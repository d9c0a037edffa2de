#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <slidestream/error.hpp>
#include <span>

#include "sink/file_digest.hpp"
#include "sink/final_name.hpp"

/// \file
/// A file that can be looked at while it is written, under another name than the one that it gets when it is whole.

struct iovec;

namespace slidestream {

/// Another writer has the file or folder.
class InUseError : public OutputError {
 public:
  using OutputError::OutputError;
};

/// NAME.partial.ome.tif for NAME.ome.tif: in front of the last extension, and of `.ome` before that.
std::filesystem::path partial_name(const std::filesystem::path& file);

/// Renaming over a folder or a device would fail at the end, or replace it. \throws Error where something else than a
/// file has the name. A link to a folder may have it: the link is replaced.
void check_final_name(const std::filesystem::path& file);

/// Whether what is open is what has this name now.
bool is_name_of(int descriptor, const std::filesystem::path& name) noexcept;

/// A new file under the partial name, in place of what an earlier writer left there, which has its first bytes when it
/// appears: until then it has a temporary name. Who writes it has it locked (flock): another writer is refused. It
/// stays there unless it is published or discarded, or can't get its final name.
/// Every member but the destructor throws OutputError with the partial file's name (`publish`: with the name that
/// fails) and the system's reason; the constructor Error where something else than a file has the final name, or what
/// has the partial one can't be replaced; and InUseError.
class PartialFile {
 public:
  explicit PartialFile(std::filesystem::path target, std::span<const std::byte> first = {});
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Pieces one after the other. Changes `pieces`.
  void write(std::uint64_t offset, std::span<::iovec> pieces);

  /// `file_digest` of the file as it was written, most of it without reading it again.
  std::uint64_t digest() const;

  /// Makes what was written durable, then gives the file its final name, in place of what had it from the beginning.
  void publish();

  /// Removes it, where it wasn't published.
  void discard() noexcept;

 private:
  void check(int code) const;

  std::filesystem::path target_;
  FinalName final_;
  std::filesystem::path name_;
  int descriptor_ = -1;
  WrittenDigest digest_;
};

/// Gives what is durable its final name, in place of a file that has it, and makes that durable. \throws OutputError
/// with the final name.
void give_name(const std::filesystem::path& name, const std::filesystem::path& target);

/// Has `write` make a whole file at the path that it is given, where nothing is; makes it durable and gives it its
/// name. Nobody sees it before: the path has the same file name, in a folder with a temporary name, which goes in any
/// case. \throws OutputError, with the names that files get in the end, and what else `write` throws.
void publish_whole(const std::filesystem::path& file, const std::function<void(const std::filesystem::path&)>& write);

}  // namespace slidestream
