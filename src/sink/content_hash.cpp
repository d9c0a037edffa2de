#include "sink/content_hash.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace slidestream {

namespace {

constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t prime3 = 0x165667B19E3779F9;
constexpr std::uint64_t prime4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t prime5 = 0x27D4EB2F165667C5;

/// The bytes as a little-endian number, whatever the machine's order.
template <class Number>
std::uint64_t load(const std::byte* at) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    Number value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) noexcept {
  return std::rotl(lane + input * prime2, 31) * prime1;
}

}  // namespace

void ContentHash::add(std::span<const std::byte> bytes) noexcept {
  total_ += bytes.size();
  // Not in the object meanwhile: bytes might be its own, for all that the compiler knows.
  auto lanes = lanes_;
  const auto stripe = [&lanes](const std::byte* at) {
    for (std::size_t i = 0; i < 4; ++i) lanes[i] = round(lanes[i], load<std::uint64_t>(at + 8 * i));
  };
  if (rest_size_ > 0) {
    const std::size_t taken = std::min(bytes.size(), sizeof rest_ - rest_size_);
    std::copy_n(bytes.begin(), taken, rest_ + rest_size_);
    rest_size_ += taken;
    bytes = bytes.subspan(taken);
    if (rest_size_ < sizeof rest_) return;
    stripe(rest_);
    rest_size_ = 0;
  }
  for (; bytes.size() >= sizeof rest_; bytes = bytes.subspan(sizeof rest_)) stripe(bytes.data());
  lanes_ = lanes;
  std::copy(bytes.begin(), bytes.end(), rest_);
  rest_size_ = bytes.size();
}

std::uint64_t ContentHash::value() const noexcept {
  std::uint64_t hash = prime5;
  if (total_ >= sizeof rest_) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * prime1 + prime4;
  }
  hash += total_;
  const std::byte* at = rest_;
  const std::byte* const end = rest_ + rest_size_;
  for (; end - at >= 8; at += 8) hash = std::rotl(hash ^ round(0, load<std::uint64_t>(at)), 27) * prime1 + prime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ (load<std::uint32_t>(at) * prime1), 23) * prime2 + prime3;
    at += 4;
  }
  for (; at < end; ++at) hash = std::rotl(hash ^ (load<std::uint8_t>(at) * prime5), 11) * prime1;
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

std::uint64_t stable_hash(std::string_view text) noexcept {
  ContentHash hash;
  hash.add(std::as_bytes(std::span(text.data(), text.size())));
  return hash.value();
}

namespace {

/// Does the work on a thread of its own; where the system has none left, when its result is asked for.
template <class Work>
auto begin(const Work& work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

struct OpenFile {
  explicit OpenFile(const std::filesystem::path& file)
      : descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor;
};

/// Of a long file so many blocks are read at a time, while the block before them is hashed: one thread reads more
/// slowly than another hashes.
constexpr std::size_t long_block = std::size_t{4} << 20;
constexpr std::size_t blocks_ahead = 3;

/// Up to the block's size, from `offset` on. \return the bytes read, fewer at the end of the file; nothing where
/// reading fails.
std::optional<std::size_t> read_block(int descriptor, std::uint64_t offset, std::span<std::byte> block) {
  std::size_t filled = 0;
  while (filled < block.size()) {
    const ssize_t got =
        ::pread(descriptor, block.data() + filled, block.size() - filled, static_cast<::off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

/// \return whether the file could be read to its end.
bool hash_file(ContentHash& hash, int descriptor) {
  // Folders hold many small files: what isn't read isn't touched.
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(block_bytes);
  const std::span<std::byte> block(memory.get(), block_bytes);
  for (std::uint64_t offset = 0;; offset += block_bytes) {
    const auto got = read_block(descriptor, offset, block);
    if (!got) return false;
    hash.add(block.first(*got));
    if (*got < block.size()) return true;
  }
}

bool hash_long_file(ContentHash& hash, int descriptor) {
  struct Block {
    std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(long_block);
    std::future<std::optional<std::size_t>> got;  ///< ends before the bytes go
  };
  std::array<Block, blocks_ahead + 1> blocks;
  std::uint64_t offset = 0;
  const auto read = [&](Block& block) {
    block.got = begin([descriptor, offset, to = block.bytes.get()] {
      return read_block(descriptor, offset, {to, long_block});
    });
    offset += long_block;
  };
  for (std::size_t i = 0; i < blocks_ahead; ++i) read(blocks[i]);
  for (std::size_t now = 0;; ++now) {
    read(blocks[(now + blocks_ahead) % blocks.size()]);
    Block& block = blocks[now % blocks.size()];
    const std::optional<std::size_t> got = block.got.get();
    if (!got) return false;
    hash.add({block.bytes.get(), *got});
    if (*got < long_block) return true;
  }
}

}  // namespace

std::optional<std::uint64_t> file_hash(const std::filesystem::path& file) {
  const OpenFile open(file);
  if (open.descriptor < 0) return std::nullopt;
  ContentHash hash;
  struct ::stat about {};
  const bool is_long = ::fstat(open.descriptor, &about) == 0 && about.st_size > static_cast<off_t>(4 * long_block);
  const bool whole = is_long ? hash_long_file(hash, open.descriptor) : hash_file(hash, open.descriptor);
  return whole ? std::optional(hash.value()) : std::nullopt;
}

namespace {

namespace fs = std::filesystem;

/// Calls `see` with each file in a folder. \return whether all of it could be looked at.
template <class See>
bool see_files(const fs::path& folder, const See& see) {
  std::error_code code;
  fs::recursive_directory_iterator entry(folder, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    if (!entry->is_directory(code) && !code && !see(entry->path())) return false;
    if (code) break;
  }
  return !code;
}

std::optional<std::uint64_t> file_bytes(const fs::path& file) {
  std::error_code code;
  if (!fs::is_regular_file(file, code)) return std::nullopt;
  const std::uintmax_t bytes = fs::file_size(file, code);
  return code ? std::nullopt : std::optional<std::uint64_t>(bytes);
}

/// What is in the files of a folder: bytes and hash, by name. Several at a time. \return whether all could be read.
bool describe_files(const fs::path& folder, std::map<std::string, std::string>& files) {
  std::mutex mutex;
  bool all = true;
  auto next = files.begin();  // guarded by mutex, as `all`
  const auto work = [&] {
    for (;;) {
      auto file = files.end();
      {
        const std::lock_guard lock(mutex);
        if (!all || next == files.end()) return;
        file = next++;
      }
      const auto bytes = file_bytes(folder / file->first);
      const auto hash = file_hash(folder / file->first);
      if (bytes && hash) {
        file->second = std::to_string(*bytes) + " " + std::to_string(*hash);
      } else {
        const std::lock_guard lock(mutex);
        all = false;
      }
    }
  };
  const std::size_t most = std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, 8);
  std::vector<std::future<void>> helpers;
  // A file or two are read before a thread has begun.
  for (std::size_t i = 1; i < std::min(most, files.size() / 16); ++i) {
    helpers.push_back(begin(work));
  }
  work();
  for (std::future<void>& helper : helpers) helper.get();
  return all;
}

}  // namespace

std::optional<std::uint64_t> path_bytes(const fs::path& path) {
  std::error_code code;
  if (!fs::is_directory(path, code)) return file_bytes(path);
  std::uint64_t all = 0;
  const bool seen = see_files(path, [&](const fs::path& file) {
    const auto bytes = file_bytes(file);
    all += bytes.value_or(0);
    return bytes.has_value();
  });
  return seen ? std::optional(all) : std::nullopt;
}

std::optional<PathContent> path_content(const fs::path& path) {
  const auto whole = path_bytes(path);
  if (!whole) return std::nullopt;
  std::error_code code;
  if (!fs::is_directory(path, code)) {
    const auto hash = file_hash(path);
    return hash ? std::optional(PathContent{*whole, *hash}) : std::nullopt;
  }
  std::map<std::string, std::string> files;
  const bool seen = see_files(path, [&](const fs::path& file) {
    files.emplace(file.lexically_relative(path).generic_string(), std::string());
    return true;
  });
  if (!seen || !describe_files(path, files)) return std::nullopt;
  ContentHash digest;
  for (const auto& [name, what] : files) {
    // With the NUL at the end of each, which is in no name.
    digest.add(std::as_bytes(std::span(name.c_str(), name.size() + 1)));
    digest.add(std::as_bytes(std::span(what.c_str(), what.size() + 1)));
  }
  return PathContent{*whole, digest.value()};
}

}  // namespace slidestream
