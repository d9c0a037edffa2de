#include "sink/content_hash.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <span>

#include "sink/background.hpp"
#include "sink/file_calls.hpp"

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
    block.got = in_background([descriptor, offset, to = block.bytes.get()] {
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

std::optional<std::uint64_t> file_hash(const std::filesystem::path& file, std::uintmax_t most_bytes) {
  const OpenFile open(file);
  struct ::stat about {};
  if (open.descriptor < 0 || ::fstat(open.descriptor, &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  if (static_cast<std::uintmax_t>(about.st_size) > most_bytes) return std::nullopt;
  ContentHash hash;
  const bool is_long = about.st_size > static_cast<off_t>(4 * long_block);
  const bool whole = is_long ? hash_long_file(hash, open.descriptor) : hash_file(hash, open.descriptor);
  return whole ? std::optional(hash.value()) : std::nullopt;
}

}  // namespace slidestream
