#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace slidestream {

/// XXH64 (https://github.com/Cyan4973/xxHash, the specification in doc/xxhash_spec.md) of bytes that come in pieces.
/// It tells changed content from unchanged; it is no proof against somebody who forges a collision.
class ContentHash {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  std::uint64_t value() const noexcept;

 private:
  static constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87;
  static constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4F;

  std::array<std::uint64_t, 4> lanes_ = {prime1 + prime2, prime2, 0, 0 - prime1};
  std::byte rest_[32] = {};
  std::size_t rest_size_ = 0;
  std::uint64_t total_ = 0;
};

/// Of a text, for what needs the same number on every machine.
std::uint64_t stable_hash(std::string_view text) noexcept;

/// Of a file's content, from its first byte to its last; nothing when it can't be read, isn't a regular file, or has
/// more bytes than `most_bytes`. What is kept of files that are made is another number (file_digest.hpp).
std::optional<std::uint64_t> file_hash(const std::filesystem::path& file,
                                       std::uintmax_t most_bytes = std::numeric_limits<std::uintmax_t>::max());

}  // namespace slidestream
