#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sink/content_hash.hpp"

/// \file
/// The number that tells a file that was made from another.
///
/// Of a file of up to 1 MiB it is XXH64 (seed 0) of its bytes. A longer one is seen as blocks of 1 MiB, the last of
/// which may be shorter: its number is XXH64 of all of these blocks' XXH64s, in order, and the file's size behind them,
/// each as 8 bytes, the lowest first. So blocks count as they are written, and are read again several at a time.

struct iovec;

namespace slidestream {

inline constexpr std::size_t digest_block = std::size_t{1} << 20;

/// The digest of a file that is being written, of what is written: what comes in the file's order is hashed on its way,
/// from memory, and only blocks that something was written to a second time are read in the end.
class WrittenDigest {
 public:
  /// The pieces, one after the other from `offset` on, are being written. What was skipped is a hole of zeros.
  void add(std::uint64_t offset, std::span<const ::iovec> pieces);

  /// Something else may lie there than what was added.
  void forget(std::uint64_t offset, std::uint64_t bytes);

  /// The end of what was added, in bytes.
  std::uint64_t size() const noexcept { return at_; }

  /// Of the file that is open for reading, which has `size` bytes; nothing where a block can't be read.
  std::optional<std::uint64_t> value(int descriptor) const;

 private:
  void add(std::span<const std::byte> bytes);
  void add_zeros(std::uint64_t most);
  void end_block();

  std::vector<std::optional<std::uint64_t>> blocks_;  ///< those before the one that `at_` lies in; empty: to be read
  std::uint64_t at_ = 0;
  ContentHash hash_;   ///< of that block so far
  bool known_ = true;  ///< whether it is
};

/// All pieces at `offset`, which are hashed meanwhile: on another thread where there is enough of them. Changes
/// `pieces`. \return 0, or an errno; the digest then knows nothing of what lies there.
int write_at(int descriptor, std::uint64_t offset, std::span<::iovec> pieces, WrittenDigest& digest);

/// Of a file that nobody writes; nothing when it can't be read, or isn't a regular file.
std::optional<std::uint64_t> file_digest(const std::filesystem::path& file);

/// What lies at a path.
struct PathContent {
  std::uint64_t bytes = 0;   ///< of a folder: of the files in it
  std::uint64_t digest = 0;  ///< `file_digest`; of a folder: over names, sizes and digests of the files in it, by name
};

/// The digest of a folder with these files, whose names are relative to it.
std::uint64_t folder_digest(const std::map<std::string, PathContent>& files);

/// Of a file or a folder without its stray files; nothing when something of it can't be read.
/// \param code  why: an errno, or 0 where something is neither a file nor a folder
std::optional<PathContent> path_content(const std::filesystem::path& path);
std::optional<PathContent> path_content(const std::filesystem::path& path, int& code);

/// Bytes of a file, or of all files in a folder but stray ones; nothing when it isn't there, or is neither.
/// \param code  as of `path_content`
/// \param looks_into_folders  false: a folder is as what is neither, and isn't looked into
std::optional<std::uint64_t> path_bytes(const std::filesystem::path& path);
std::optional<std::uint64_t> path_bytes(const std::filesystem::path& path, int& code, bool looks_into_folders = true);

}  // namespace slidestream
