#include "sink/file_digest.hpp"

#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "sink/background.hpp"
#include "sink/file_calls.hpp"
#include "sink/stray_files.hpp"
#include "system/control_groups.hpp"

namespace slidestream {

namespace {

using Blocks = std::vector<std::optional<std::uint64_t>>;

/// Bytes that are read at a time. They are hashed while they are still in a core's own cache.
constexpr std::size_t read_bytes = std::size_t{128} << 10;

/// Unknown blocks for each thread that reads: for fewer, another one isn't worth its start.
constexpr std::size_t blocks_a_thread = 8;

/// \param code  gets an errno where it can't be read
std::optional<std::uint64_t> read_block(int descriptor, std::uint64_t offset, std::uint64_t bytes,
                                        std::span<std::byte> room, std::atomic<int>& code) {
  ContentHash hash;
  while (bytes > 0) {
    const auto part = room.first(std::min<std::uint64_t>(bytes, room.size()));
    if (const int failed = read_at(descriptor, offset, part); failed != 0) {
      code = failed;
      return std::nullopt;
    }
    hash.add(part);
    offset += part.size();
    bytes -= part.size();
  }
  return hash.value();
}

/// Reads the blocks that aren't known. \return 0, or an errno.
int read_unknown(int descriptor, std::uint64_t size, Blocks& blocks) {
  std::vector<std::size_t> unknown;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!blocks[i]) unknown.push_back(i);
  }
  std::atomic<std::size_t> next{0};
  std::atomic<int> code{0};
  const auto work = [&] {
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(read_bytes);
    while (code == 0) {
      const std::size_t i = next++;
      if (i >= unknown.size()) return;
      const std::uint64_t offset = std::uint64_t{unknown[i]} * digest_block;
      blocks[unknown[i]] = read_block(descriptor, offset, std::min<std::uint64_t>(digest_block, size - offset),
                                      {memory.get(), read_bytes}, code);
    }
  };
  const std::size_t most = std::clamp<std::size_t>(static_cast<std::size_t>(allowed_processors()), 1, 4);
  at_once(std::clamp<std::size_t>(unknown.size() / blocks_a_thread, 1, most), work);
  return code;
}

void add_number(ContentHash& hash, std::uint64_t value) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = std::byte(value >> (8 * k) & 0xff);
  hash.add(bytes);
}

/// The digest of a file of that size. \param blocks  the hashes of all its blocks; blocks without one are read
/// \param code  gets 0, or an errno where a block can't be read
std::optional<std::uint64_t> digest_of(int descriptor, std::uint64_t size, Blocks blocks, int& code) {
  code = read_unknown(descriptor, size, blocks);
  if (code != 0) return std::nullopt;
  if (blocks.size() == 1) return blocks.front();
  ContentHash hash;
  if (size == 0) return hash.value();
  for (const auto& block : blocks) add_number(hash, *block);
  add_number(hash, size);
  return hash.value();
}

}  // namespace

void WrittenDigest::add(std::uint64_t offset, std::span<const ::iovec> pieces) {
  std::uint64_t bytes = 0;
  for (const ::iovec& piece : pieces) bytes += piece.iov_len;
  if (bytes == 0) return;
  if (offset < at_) return forget(offset, bytes);
  while (at_ < offset) add_zeros(offset - at_);
  for (const ::iovec& piece : pieces) add({static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
}

/// Adds zeros: `most` at most, and none beyond the end of the block.
void WrittenDigest::add_zeros(std::uint64_t most) {
  static const std::vector<std::byte> zeros(digest_block);
  static const std::uint64_t whole_block = [] {
    ContentHash hash;
    hash.add(zeros);
    return hash.value();
  }();
  if (at_ % digest_block != 0 || most < digest_block) {
    return add(std::span(zeros).first(std::min(most, digest_block - at_ % digest_block)));
  }
  blocks_.emplace_back(whole_block);
  at_ += digest_block;
}

void WrittenDigest::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), digest_block - at_ % digest_block));
    if (known_) hash_.add(part);
    at_ += part.size();
    bytes = bytes.subspan(part.size());
    if (at_ % digest_block == 0) end_block();
  }
}

void WrittenDigest::end_block() {
  blocks_.push_back(known_ ? std::optional(hash_.value()) : std::nullopt);
  hash_ = {};
  known_ = true;
}

void WrittenDigest::forget(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = offset + bytes;
  if (bytes == 0) return;
  for (std::uint64_t block = offset / digest_block; block < blocks_.size() && block * digest_block < end; ++block) {
    blocks_[block].reset();
  }
  if (end > blocks_.size() * digest_block) known_ = false;
  while (at_ < end) {
    at_ = std::min(end, (at_ / digest_block + 1) * digest_block);
    if (at_ % digest_block == 0) end_block();
    if (at_ < end) known_ = false;
  }
}

std::optional<std::uint64_t> WrittenDigest::value(int descriptor) const {
  Blocks blocks = blocks_;
  if (at_ % digest_block != 0) blocks.push_back(known_ ? std::optional(hash_.value()) : std::nullopt);
  int code = 0;
  return digest_of(descriptor, at_, std::move(blocks), code);
}

int write_and_hash(int descriptor, std::uint64_t offset, std::span<::iovec> pieces, WrittenDigest& digest) {
  // Fewer bytes are hashed in less time than a thread takes to start.
  constexpr std::uint64_t least_at_once = std::uint64_t{1} << 20;
  const std::vector<::iovec> as_they_were(pieces.begin(), pieces.end());
  std::uint64_t bytes = 0;
  for (const ::iovec& piece : pieces) bytes += piece.iov_len;
  std::future<void> hashed;
  const auto hash = [&] { digest.add(offset, as_they_were); };
  if (bytes >= least_at_once) {
    hashed = in_background(hash);
  } else {
    hash();
  }
  const int code = write_at(descriptor, offset, pieces);
  if (hashed.valid()) hashed.get();
  if (code != 0) digest.forget(offset, bytes);
  return code;
}

namespace {

namespace fs = std::filesystem;

/// \param code  0, or an errno where it can't be read
std::optional<std::uint64_t> digest_of_file(const fs::path& file, int& code) {
  const OpenFile open(file);
  struct ::stat about {};
  code = open.descriptor < 0 || ::fstat(open.descriptor, &about) != 0 ? errno : 0;
  if (code != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(about.st_size);
  return digest_of(open.descriptor, size, Blocks((size + digest_block - 1) / digest_block), code);
}

/// Calls `see` with each file of a folder and its subfolders. Stray files are left out, and symbolic links to folders
/// are neither followed nor seen. \return 0, or an errno where some of it can't be looked at.
template <class See>
int see_files(const fs::path& folder, const See& see) {
  std::error_code code;
  fs::recursive_directory_iterator entry(folder, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    if (is_stray_file(*entry)) continue;
    if (!entry->is_directory(code) && !code) see(entry->path());
    if (code) break;
  }
  return code.value();
}

/// The size of a regular file, by one system call: on network file systems each call takes a round trip.
std::optional<std::uint64_t> file_bytes(const fs::path& file, int& code) {
  struct ::stat about {};
  code = ::stat(file.c_str(), &about) != 0 ? errno : 0;
  if (code != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(about.st_size);
}

/// The sum of the files' sizes. Many threads ask for sizes at a time: they wait for storage, not for processors.
std::optional<std::uint64_t> bytes_of(const std::vector<fs::path>& files, int& code) {
  constexpr std::size_t files_a_thread = 16;
  constexpr std::size_t most_threads = 32;
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> sum{0};
  std::atomic<bool> all{true};
  std::atomic<int> failed{0};
  at_once(std::clamp<std::size_t>(files.size() / files_a_thread, 1, most_threads), [&] {
    for (std::size_t i = next++; all && i < files.size(); i = next++) {
      int cause = 0;
      const auto bytes = file_bytes(files[i], cause);
      if (bytes) {
        sum += *bytes;
      } else {
        failed = cause;
        all = false;
      }
    }
  });
  code = failed;
  return all ? std::optional(sum.load()) : std::nullopt;
}

/// Fills in the sizes and digests of a folder's files, of which `files` has the names. Threads read several files at a
/// time. \return whether all could be read.
/// \param code  gets an errno where one can't
bool describe_files(const fs::path& folder, std::map<std::string, PathContent>& files, int& code) {
  std::mutex mutex;
  bool all = true;
  auto next = files.begin();  // guarded by mutex, as `all` and `code`
  const auto work = [&] {
    for (;;) {
      auto file = files.end();
      {
        const std::lock_guard lock(mutex);
        if (!all || next == files.end()) return;
        file = next++;
      }
      int cause = 0;
      const auto bytes = file_bytes(folder / file->first, cause);
      const auto digest = bytes ? digest_of_file(folder / file->first, cause) : std::nullopt;
      if (digest) {
        file->second = {*bytes, *digest};
      } else {
        const std::lock_guard lock(mutex);
        all = false;
        code = cause;
      }
    }
  };
  // One or two files are read before a thread has started.
  const std::size_t most = std::clamp<std::size_t>(static_cast<std::size_t>(allowed_processors()) / 2, 1, 8);
  at_once(std::clamp<std::size_t>(files.size() / 16, 1, most), work);
  return all;
}

}  // namespace

std::optional<std::uint64_t> file_digest(const fs::path& file) {
  int code = 0;
  return digest_of_file(file, code);
}

std::optional<std::uint64_t> path_bytes(const fs::path& path) {
  int code = 0;
  return path_bytes(path, code);
}

std::optional<std::uint64_t> path_bytes(const fs::path& path, int& code, bool looks_into_folders) {
  struct ::stat about {};
  code = ::stat(path.c_str(), &about) != 0 ? errno : 0;
  if (code != 0) return std::nullopt;
  if (S_ISREG(about.st_mode)) return static_cast<std::uint64_t>(about.st_size);
  if (!S_ISDIR(about.st_mode) || !looks_into_folders) return std::nullopt;
  std::vector<fs::path> files;
  code = see_files(path, [&](const fs::path& file) { files.push_back(file); });
  return code == 0 ? bytes_of(files, code) : std::nullopt;
}

std::uint64_t folder_digest(const std::map<std::string, PathContent>& files) {
  ContentHash digest;
  for (const auto& [name, content] : files) {
    const std::string what = std::to_string(content.bytes) + " " + std::to_string(content.digest);
    // With the NUL at the end of each, which is in no name.
    digest.add(std::as_bytes(std::span(name.c_str(), name.size() + 1)));
    digest.add(std::as_bytes(std::span(what.c_str(), what.size() + 1)));
  }
  return digest.value();
}

std::optional<PathContent> path_content(const fs::path& path) {
  int code = 0;
  return path_content(path, code);
}

std::optional<PathContent> path_content(const fs::path& path, int& code) {
  const auto whole = path_bytes(path, code);
  if (!whole) return std::nullopt;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    const auto digest = digest_of_file(path, code);
    return digest ? std::optional(PathContent{*whole, *digest}) : std::nullopt;
  }
  std::map<std::string, PathContent> files;
  code = see_files(path, [&](const fs::path& file) {
    files.emplace(file.lexically_relative(path).generic_string(), PathContent());
  });
  if (code != 0 || !describe_files(path, files, code)) return std::nullopt;
  return PathContent{*whole, folder_digest(files)};
}

}  // namespace slidestream
