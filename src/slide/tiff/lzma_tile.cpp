#include "slide/tiff/lzma_tile.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <string>

namespace slidestream {
namespace {

struct EndOfLzma {};

/// Reads a stream of .xz. \throws EndOfLzma behind the end.
class XzReader {
 public:
  explicit XzReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }

  std::uint64_t byte() {
    skip(1);
    return std::to_integer<std::uint64_t>(bytes_[at_ - 1]);
  }

  std::uint64_t big_endian_16() {
    const std::uint64_t high = byte();
    return high << 8 | byte();
  }

  /// Seven bits a byte, the lowest first.
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      const std::uint64_t next = byte();
      value |= (next & 0x7f) << shift;
      if (next < 0x80) return value;
    }
    throw EndOfLzma{};
  }

  void skip(std::uint64_t bytes) {
    if (bytes > bytes_.size() - at_) throw EndOfLzma{};
    at_ += static_cast<std::size_t>(bytes);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

/// Reads a block's header from behind its first byte. \returns the dictionary that it declares
std::uint64_t read_block_header(XzReader& reader, std::uint64_t size) {
  const std::size_t end = reader.at() - 1 + static_cast<std::size_t>(size);
  const std::uint64_t flags = reader.byte();
  if ((flags & 0x40) != 0) reader.number();
  if ((flags & 0x80) != 0) reader.number();
  std::uint64_t most = 0;
  for (std::uint64_t filters = (flags & 3) + 1; filters > 0; --filters) {
    constexpr std::uint64_t lzma2 = 0x21;
    const bool is_lzma = reader.number() == lzma2;
    const std::uint64_t properties = reader.number();
    if (is_lzma && properties == 1) {
      const std::uint64_t bits = std::min<std::uint64_t>(reader.byte(), 40);
      most = std::max(most, bits == 40 ? 0xffffffff : (2 | (bits & 1)) << (bits / 2 + 11));
    } else {
      reader.skip(properties);
    }
  }
  if (reader.at() > end) throw EndOfLzma{};
  reader.skip(end - reader.at());
  return most;
}

/// Passes the chunks of LZMA2, which say their lengths.
void skip_chunks(XzReader& reader) {
  while (const std::uint64_t control = reader.byte()) {
    const bool is_coded = control >= 0x80;
    const std::uint64_t size = reader.big_endian_16() + 1;
    if (!is_coded) {
      reader.skip(size);
      continue;
    }
    const std::uint64_t coded = reader.big_endian_16() + 1;
    reader.skip(coded + (control >= 0xc0 ? 1 : 0));
  }
}

/// The largest dictionary that a block declares; of a damaged stream, as far as it can be read.
std::uint64_t largest_dictionary(std::span<const std::byte> tile) {
  std::uint64_t most = 0;
  try {
    XzReader reader(tile);
    reader.skip(7);  // a magic number, and a byte of flags that are 0
    const std::uint64_t check = reader.byte() & 15;
    reader.skip(4);
    // An index begins with 0.
    while (const std::uint64_t words = reader.byte()) {
      most = std::max(most, read_block_header(reader, 4 * (words + 1)));
      skip_chunks(reader);
      reader.skip((4 - reader.at() % 4) % 4);
      reader.skip(check == 0 ? 0 : std::uint64_t{4} << (check - 1) / 3);
    }
  } catch (const EndOfLzma&) {  // liblzma finds the damage, before it comes to another block
  }
  return most;
}

}  // namespace

void check_lzma_tile(std::span<const std::byte> tile, std::uint64_t sample_bytes) {
  const std::uint64_t dictionary = largest_dictionary(tile);
  if (dictionary <= std::max(most_lzma_dictionary, sample_bytes)) return;
  throw TileError("LZMA with a dictionary of " + std::to_string(dictionary >> 20) + " MiB, supported are " +
                  std::to_string(most_lzma_dictionary >> 20) + " MiB, or as much as the tile's samples");
}

}  // namespace slidestream
