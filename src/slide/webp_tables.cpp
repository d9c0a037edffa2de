#include "slide/webp_tables.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace slidestream {
namespace {

/// Five codes: records of them, and tables with a cache of colours of 2^11, which libwebp takes at once.
constexpr std::uint64_t bytes_of_webp_group = 21 << 10;
constexpr std::uint64_t most_webp_groups = 65536;
constexpr std::uint64_t least_bits_of_webp_group = 20;  // five codes of one symbol

struct EndOfBits {};

/// Reads bits, the lowest of a byte first. \throws EndOfBits behind the end.
class WebpBits {
 public:
  explicit WebpBits(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }

  unsigned read(unsigned count) {
    unsigned value = 0;
    for (unsigned i = 0; i < count; ++i, ++at_) {
      if (at_ / 8 >= bytes_.size()) throw EndOfBits{};
      value |= (std::to_integer<unsigned>(bytes_[at_ / 8]) >> (at_ % 8) & 1U) << i;
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

/// A canonical prefix code of up to 15 bits.
class WebpCode {
 public:
  /// \param lengths of the symbols' codes, 0 for symbols without one
  explicit WebpCode(std::span<const std::uint8_t> lengths) {
    for (const std::uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    for (unsigned length = 1; length < counts_.size(); ++length) {
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] == length) symbols_.push_back(static_cast<std::uint16_t>(i));
      }
    }
    if (symbols_.empty()) throw EndOfBits{};
  }

  unsigned read(WebpBits& bits) const {
    if (symbols_.size() == 1) return symbols_[0];
    unsigned code = 0, first = 0, index = 0;
    for (std::size_t length = 1; length < counts_.size(); ++length) {
      code |= bits.read(1);
      if (code < first + counts_[length]) return symbols_[index + code - first];
      index += counts_[length];
      first = (first + counts_[length]) * 2;
      code *= 2;
    }
    throw EndOfBits{};
  }

 private:
  std::array<unsigned, 16> counts_{};
  std::vector<std::uint16_t> symbols_;  // by length of their code, then by value
};

/// Reads the lengths of a code whose symbols are few: one or two.
void read_simple_lengths(WebpBits& bits, std::vector<std::uint8_t>& lengths) {
  const bool has_two = bits.read(1) != 0;
  const unsigned first = bits.read(bits.read(1) != 0 ? 8 : 1);
  for (const unsigned symbol : {first, has_two ? bits.read(8) : first}) {
    if (symbol >= lengths.size()) throw EndOfBits{};
    lengths[symbol] = 1;
  }
}

/// Reads lengths that are coded themselves.
void read_coded_lengths(WebpBits& bits, std::vector<std::uint8_t>& lengths) {
  constexpr std::array<std::uint8_t, 19> order = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::array<std::uint8_t, 19> own{};
  const unsigned count = bits.read(4) + 4;
  for (unsigned i = 0; i < std::min<unsigned>(count, order.size()); ++i) {
    own[order[i]] = static_cast<std::uint8_t>(bits.read(3));
  }
  const WebpCode code(own);
  std::size_t left = lengths.size();
  if (bits.read(1) != 0) {
    const unsigned width = 2 + 2 * bits.read(3);
    left = 2 + bits.read(width);
  }
  std::uint8_t last = 8;
  for (std::size_t i = 0; i < lengths.size() && left > 0; --left) {
    const unsigned symbol = code.read(bits);
    std::size_t times = 1;
    std::uint8_t length = 0;
    if (symbol < 16) {
      length = static_cast<std::uint8_t>(symbol);
      if (length != 0) last = length;
    } else if (symbol == 16) {
      length = last;
      times = 3 + bits.read(2);
    } else {
      times = symbol == 17 ? 3 + bits.read(3) : 11 + bits.read(7);
    }
    if (times > lengths.size() - i) throw EndOfBits{};
    std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(i), times, length);
    i += times;
  }
}

WebpCode read_code(WebpBits& bits, std::size_t symbols) {
  std::vector<std::uint8_t> lengths(symbols);
  if (bits.read(1) != 0) {
    read_simple_lengths(bits, lengths);
  } else {
    read_coded_lengths(bits, lengths);
  }
  return WebpCode(lengths);
}

unsigned read_cache_bits(WebpBits& bits) { return bits.read(1) != 0 ? bits.read(4) : 0; }

/// Reads the value of a length or distance whose first bits are `symbol`.
std::uint64_t read_length(WebpBits& bits, unsigned symbol) {
  if (symbol < 4) return symbol + 1;
  const unsigned more = (symbol - 2) / 2;
  return (std::uint64_t{2 + (symbol & 1U)} << more) + bits.read(more) + 1;
}

/// Reads a picture with one group of codes: of a transform, or of the blocks' groups. \returns how many groups libwebp
/// keeps if it is the latter. Copies and the cache repeat what literal pixels said.
std::uint64_t read_small_picture(WebpBits& bits, std::uint64_t pixels) {
  constexpr unsigned literals = 256, lengths = 24, distances = 40;
  const unsigned cache = read_cache_bits(bits);
  if (cache > 11) throw EndOfBits{};
  const WebpCode green = read_code(bits, literals + lengths + (cache > 0 ? std::size_t{1} << cache : 0));
  const WebpCode red = read_code(bits, literals), blue = read_code(bits, literals), alpha = read_code(bits, literals);
  const WebpCode distance = read_code(bits, distances);
  std::vector<bool> seen(most_webp_groups);
  seen[0] = true;  // what the cache begins with
  while (pixels > 0) {
    const std::size_t before = bits.at();
    const unsigned symbol = green.read(bits);
    std::uint64_t times = 1;
    if (symbol < literals) {
      seen[red.read(bits) << 8 | symbol] = true;
      blue.read(bits);
      alpha.read(bits);
    } else if (symbol < literals + lengths) {
      times = read_length(bits, symbol - literals);
      read_length(bits, distance.read(bits));
    }
    if (times > pixels) throw EndOfBits{};
    pixels -= times;
    if (bits.at() == before) break;  // all that follow say the same, in no bits
  }
  // Up to 1,000 groups are kept, whether a block has them or not; of more only those of blocks.
  constexpr std::ptrdiff_t all_below = 1000;
  const auto used = static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), true));
  const auto last = std::find(seen.rbegin(), seen.rend(), true).base() - seen.begin();
  return last > all_below ? used : static_cast<std::uint64_t>(last);
}

/// What a lossless picture or alpha of a size takes, from its first transform on.
class WebpStream {
 public:
  WebpStream(std::span<const std::byte> bytes, std::uint64_t width, std::uint64_t height)
      : bytes_(bytes), width_(width), height_(height) {}

  std::uint64_t table_bytes() {
    std::uint64_t groups =
        std::min({most_webp_groups, blocks(width_, 2), bytes_.size() * 8 / least_bits_of_webp_group});
    small_pixels_ = 3 * blocks(width_, 2);
    try {
      groups = read_groups();
    } catch (const EndOfBits&) {  // libwebp finds the damage, too, but at any time
    }
    return groups * bytes_of_webp_group + small_pixels_ * 4;
  }

 private:
  std::uint64_t blocks(std::uint64_t width, unsigned bits) const {
    const std::uint64_t side = std::uint64_t{1} << bits;
    return ((width + side - 1) >> bits) * ((height_ + side - 1) >> bits);
  }

  std::uint64_t read_groups() {
    constexpr unsigned subtract_green = 2, palette = 3;
    WebpBits bits(bytes_);
    std::uint64_t width = width_, pixels = 0;
    for (int transforms = 0; bits.read(1) != 0; ++transforms) {
      if (transforms == 4) throw EndOfBits{};
      const unsigned kind = bits.read(2);
      if (kind == subtract_green) continue;
      if (kind == palette) {
        const unsigned colours = bits.read(8) + 1;
        read_small_picture(bits, colours);
        const unsigned packed = colours <= 2 ? 3 : colours <= 4 ? 2 : colours <= 16 ? 1 : 0;
        width = (width + (1U << packed) - 1) >> packed;
      } else {
        const std::uint64_t size = blocks(width, bits.read(3) + 2);
        read_small_picture(bits, size);
        pixels += size;
      }
    }
    read_cache_bits(bits);
    std::uint64_t groups = 1;
    if (bits.read(1) != 0) {
      const std::uint64_t size = blocks(width, bits.read(3) + 2);
      groups = read_small_picture(bits, size);
      pixels += size;
    }
    small_pixels_ = pixels;
    return groups;
  }

  std::span<const std::byte> bytes_;
  std::uint64_t width_, height_;
  std::uint64_t small_pixels_ = 0;  // of pictures of blocks
};

bool is_at(std::span<const std::byte> bytes, std::size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

std::uint32_t little_endian(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count && at + i < bytes.size(); ++i) {
    value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
  }
  return value;
}

/// The picture within a tile, from the first byte of its own header on.
struct WebpPicture {
  std::span<const std::byte> bytes;
  bool is_lossless = false;
  std::optional<std::span<const std::byte>> alpha;  ///< of a lossy one
};

WebpPicture picture_in(std::span<const std::byte> tile) {
  constexpr std::size_t chunk_header = 8;
  std::size_t at = is_at(tile, 0, "RIFF") ? 12 : 0;
  WebpPicture picture;
  if (is_at(tile, at, "VP8X") || is_at(tile, at, "ALPH")) {
    while (tile.size() >= at + chunk_header && !is_at(tile, at, "VP8 ") && !is_at(tile, at, "VP8L")) {
      const std::size_t size = little_endian(tile, at + 4, 4);
      if (is_at(tile, at, "ALPH")) picture.alpha = tile.subspan(at + chunk_header);
      at += chunk_header + size + size % 2;
    }
  }
  const bool is_lossy = is_at(tile, at, "VP8 ");
  if (is_lossy || is_at(tile, at, "VP8L")) at += chunk_header;
  if (at >= tile.size()) return picture;
  picture.bytes = tile.subspan(at);
  picture.is_lossless = !is_lossy && picture.bytes[0] == std::byte{0x2F};
  return picture;
}

struct WebpSize {
  std::uint64_t width = 0, height = 0;
};

WebpSize size_of(const WebpPicture& picture) {
  if (picture.is_lossless) {
    const std::uint32_t sizes = little_endian(picture.bytes, 1, 4);
    return {(sizes & 0x3FFFU) + 1, (sizes >> 14 & 0x3FFFU) + 1};
  }
  return {little_endian(picture.bytes, 6, 2) & 0x3FFFU, little_endian(picture.bytes, 8, 2) & 0x3FFFU};
}

}  // namespace

std::uint64_t webp_width(std::span<const std::byte> tile) { return size_of(picture_in(tile)).width; }

std::uint64_t webp_table_bytes(std::span<const std::byte> tile) {
  const WebpPicture picture = picture_in(tile);
  const WebpSize size = size_of(picture);
  constexpr std::size_t lossless_header = 5, alpha_header = 1;
  if (picture.is_lossless) {
    if (picture.bytes.size() <= lossless_header) return 0;  // libwebp refuses it
    return WebpStream(picture.bytes.subspan(lossless_header), size.width, size.height).table_bytes();
  }
  // The two lowest bits are 1 where alpha is coded as a lossless picture.
  const auto& alpha = picture.alpha;
  if (!alpha || alpha->size() <= alpha_header || (alpha->front() & std::byte{3}) != std::byte{1}) return 0;
  return WebpStream(alpha->subspan(alpha_header), size.width, size.height).table_bytes();
}

}  // namespace slidestream
