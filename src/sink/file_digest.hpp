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
/// The digest of a file that was made: it shows later whether the file's content has changed.
///
/// The digest of a file of up to 1 MiB is XXH64 (seed 0) of its bytes. A longer file is cut into blocks of 1 MiB, of
/// which the last may be shorter. Its digest is XXH64 of 8-byte numbers, lowest byte first: the XXH64 of each block in
/// order, then the file's size. So blocks are hashed as they are written, and several at a time when they are read.

struct iovec;

namespace slidestream {

inline constexpr std::size_t digest_block = std::size_t{1} << 20;

/// The digest of a file that is being written. Bytes that come in the file's order are hashed from memory. `value`
/// reads the other blocks: those touched by a write that failed, or that began before the end.
class WrittenDigest {
 public:
  /// Adds pieces that are written one after the other from `offset` on. Where `offset` is beyond the end, the bytes
  /// between are a hole of zeros. Where it is before the end, nothing is hashed: see `forget`.
  void add(std::uint64_t offset, std::span<const ::iovec> pieces);

  /// Has `value` read the blocks of these bytes, as the file may hold others than were added. The end moves to theirs
  /// if that is later.
  void forget(std::uint64_t offset, std::uint64_t bytes);

  /// The end: bytes of the file so far.
  std::uint64_t size() const noexcept { return at_; }

  /// The digest. \param descriptor  the file, open for reading, with `size` bytes. \return nothing if a block that is
  /// to be read can't be
  std::optional<std::uint64_t> value(int descriptor) const;

 private:
  void add(std::span<const std::byte> bytes);
  void add_zeros(std::uint64_t most);
  void end_block();

  std::vector<std::optional<std::uint64_t>> blocks_;  ///< hashes of those before the end's block; empty: read it
  std::uint64_t at_ = 0;                              ///< the end
  ContentHash hash_;                                  ///< of the end's block so far
  bool known_ = true;                                 ///< whether all of its bytes so far are in `hash_`
};

/// Writes all pieces from `offset` on, and adds them to `digest`. Another thread hashes them during the write, if one
/// can be started. Less than 1 MiB is hashed on this thread before the write. Changes `pieces`.
/// \return 0, or an errno; then `digest` has forgotten these bytes.
int write_and_hash(int descriptor, std::uint64_t offset, std::span<::iovec> pieces, WrittenDigest& digest);

/// The digest of a file that nobody writes; nothing if it can't be read, or isn't a regular file. Only tests call it:
/// the program calls `path_content`.
std::optional<std::uint64_t> file_digest(const std::filesystem::path& file);

/// What lies at a path.
struct PathContent {
  std::uint64_t bytes = 0;   ///< of a folder: of the files in it
  std::uint64_t digest = 0;  ///< `file_digest`; of a folder: over names, sizes and digests of the files in it, by name
};

/// The digest of a folder with these files, whose names are relative to it.
std::uint64_t folder_digest(const std::map<std::string, PathContent>& files);

/// What lies at this path; nothing if something of it can't be read. Of what a folder holds, stray files and symbolic
/// links to folders don't count.
/// \param code  why: an errno, or 0 where something is neither a file nor a folder
std::optional<PathContent> path_content(const std::filesystem::path& path);
std::optional<PathContent> path_content(const std::filesystem::path& path, int& code);

/// Bytes of a file, or of all files in a folder that `path_content` counts; nothing if it isn't there, is neither, or
/// something of it can't be looked at.
/// \param code  as of `path_content`
/// \param looks_into_folders  false: a folder is as what is neither, and isn't looked into
std::optional<std::uint64_t> path_bytes(const std::filesystem::path& path);
std::optional<std::uint64_t> path_bytes(const std::filesystem::path& path, int& code, bool looks_into_folders = true);

}  // namespace slidestream
