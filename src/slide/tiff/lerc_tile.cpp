#include "slide/tiff/lerc_tile.hpp"

#include <tiffio.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace slidestream {
namespace {

/// What libtiff gives a blob room for.
std::size_t most_of_blob(const LercTile& tile) {
  const std::size_t samples = tile.width * tile.height * tile.samples;
  return std::max<std::size_t>(256 + samples + samples / 3, ZSTD_compressBound(samples));
}

/// What can't be unpacked gives nothing.
std::vector<std::byte> inflated_blob(std::span<const std::byte> bytes, std::size_t most) {
  std::vector<std::byte> blob(most);
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max()));
  stream.next_out = reinterpret_cast<Bytef*>(blob.data());
  stream.avail_out = static_cast<uInt>(std::min<std::size_t>(blob.size(), std::numeric_limits<uInt>::max()));
  const bool is_whole = inflate(&stream, Z_FINISH) == Z_STREAM_END;
  blob.resize(is_whole ? stream.total_out : 0);
  inflateEnd(&stream);
  return blob;
}

std::vector<std::byte> zstd_blob(std::span<const std::byte> bytes, std::size_t most) {
  std::vector<std::byte> blob(most);
  const std::size_t size = ZSTD_decompress(blob.data(), blob.size(), bytes.data(), bytes.size());
  blob.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return blob;
}

/// Walks through a blob as liblerc does, without its values.
class LercWalk {
 public:
  LercWalk(std::span<const std::byte> blob, const LercTile& tile) : blob_(blob), tile_(tile) {}

  void check() {
    constexpr std::string_view second_kind = "Lerc2 ";
    if (blob_.size() < second_kind.size() || std::memcmp(blob_.data(), second_kind.data(), second_kind.size()) != 0) {
      throw TileError("isn't LERC of the second kind");
    }
    at_ = second_kind.size();
    read_header();
    read_mask();
    if (valid_ == 0 || is_constant_) return;
    if (version_ >= 4) {
      const auto least = take(depth_), most = take(depth_);
      if (std::ranges::equal(least, most)) return;
    }
    if (number(1) != 0) return;  // values as they are, whose length liblerc looks at
    if (version_ >= 2 && is_lossless_ && number(1) != 0) {
      check_huffman();
    } else {
      check_blocks();
    }
  }

 private:
  [[noreturn]] static void refuse() { throw TileError("LERC that contradicts itself"); }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > blob_.size() - at_) refuse();
    const auto taken = blob_.subspan(at_, count);
    at_ += count;
    return taken;
  }
  std::uint64_t number(std::size_t count) {
    std::uint64_t value = 0;
    int shift = 0;
    for (const std::byte byte : take(count)) {
      value |= std::to_integer<std::uint64_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }

  void read_header() {
    constexpr std::uint64_t newest = 6, type_of_bytes = 1, largest_block = 32;
    version_ = number(4);
    if (version_ == 0 || version_ > newest) throw TileError("LERC of version " + std::to_string(version_));
    if (version_ >= 3) take(4);  // a checksum, which liblerc looks at
    const std::uint64_t height = number(4), width = number(4);
    depth_ = version_ >= 4 ? number(4) : 1;
    valid_ = number(4);
    block_ = number(4);
    const std::uint64_t size = number(4), type = number(4);
    if (width != tile_.width || height != tile_.height || (depth_ != tile_.samples && depth_ + 1 != tile_.samples)) {
      throw TileError("LERC of " + std::to_string(width) + " x " + std::to_string(height) + " x " +
                      std::to_string(depth_) + " samples, expected " + std::to_string(tile_.width) + " x " +
                      std::to_string(tile_.height) + " x " + std::to_string(tile_.samples));
    }
    if (size != blob_.size() || type != type_of_bytes || depth_ == 0 || block_ == 0 || block_ > largest_block ||
        valid_ > pixels()) {
      refuse();
    }
    if (version_ >= 6) take(8);
    is_lossless_ = std::bit_cast<double>(number(8)) == 0.5;
    const auto least = std::bit_cast<double>(number(8));
    is_constant_ = least == std::bit_cast<double>(number(8));
    if (version_ >= 6) take(16);
  }

  /// Fills the mask where some pixels are valid and others aren't.
  void read_mask() {
    const std::uint64_t size = number(4);
    if (valid_ == 0 || valid_ == pixels()) {
      if (size != 0) refuse();
      return;
    }
    take(size);
    const std::size_t behind = at_;
    at_ -= size;
    constexpr std::int16_t end = std::numeric_limits<std::int16_t>::min();
    const std::uint64_t most = (pixels() + 7) / 8;
    mask_.reserve(most);
    while (mask_.size() < most) {
      const auto count = static_cast<std::int16_t>(number(2));
      const auto times = static_cast<std::uint64_t>(std::abs(int{count}));
      if (count == end || times > most - mask_.size()) refuse();
      if (count > 0) {
        const auto copied = take(times);
        mask_.insert(mask_.end(), copied.begin(), copied.end());
      } else {
        mask_.insert(mask_.end(), times, take(1).front());
      }
    }
    if (static_cast<std::int16_t>(number(2)) != end || at_ != behind) refuse();
  }

  void check_huffman() {
    take(8);  // a version, and how many codes there are at most
    const std::uint64_t first = number(4), end = number(4);
    if (first >= end) refuse();
    check_stuffed(end - first);  // lengths of codes; liblerc reads codes within their memory
  }

  void check_blocks() {
    for (std::uint64_t y = 0; y < tile_.height; y += block_) {
      for (std::uint64_t x = 0; x < tile_.width; x += block_) {
        const std::uint64_t count = valid_of(x, y);
        for (std::uint64_t i = 0; i < depth_; ++i) check_block(count);
      }
    }
  }

  std::uint64_t valid_of(std::uint64_t left, std::uint64_t top) const {
    const std::uint64_t right = std::min(left + block_, tile_.width), bottom = std::min(top + block_, tile_.height);
    if (mask_.empty()) return (right - left) * (bottom - top);
    std::uint64_t count = 0;
    for (std::uint64_t y = top; y < bottom; ++y) {
      for (std::uint64_t at = y * tile_.width + left; at < y * tile_.width + right; ++at) {
        count += (mask_[at / 8] << (at % 8) & std::byte{0x80}) != std::byte{0} ? 1 : 0;
      }
    }
    return count;
  }

  void check_block(std::uint64_t count) {
    enum : std::uint64_t { as_they_are, stuffed, zero, constant };
    const std::uint64_t head = number(1), kind = head & 3;
    if (kind == zero) return;
    if (kind == as_they_are) {
      take(count);
      return;
    }
    // The least value; a difference to the sample before may be wider.
    constexpr std::array<std::size_t, 4> width_of_difference = {4, 2, 2, 1};
    const bool is_difference = version_ >= 5 && (head & 4) != 0;
    take(is_difference ? width_of_difference[head >> 6] : 1);
    if (kind == stuffed) check_stuffed(count);
  }

  /// So many numbers of a few bits each, or of places in a table.
  void check_stuffed(std::uint64_t expected) {
    const std::uint64_t head = number(1), bits = head & 31;
    constexpr std::array<std::size_t, 4> width_of_count = {4, 2, 1, 0};
    if (number(width_of_count[head >> 6]) != expected || bits == 0) refuse();
    if ((head & 32) == 0) {
      take((expected * bits + 7) / 8);
      return;
    }
    // Zero is the table's first value, and isn't stored.
    const std::uint64_t values = number(1);
    if (values < 2) refuse();
    take(((values - 1) * bits + 7) / 8);
    const auto place_bits = static_cast<std::uint64_t>(std::bit_width(values - 1));
    const auto places = take((expected * place_bits + 7) / 8);
    if (version_ < 3 || std::has_single_bit(values)) return;  // liblerc looks at each of older versions
    for (std::uint64_t i = 0; i < expected; ++i) {
      std::uint64_t place = 0;
      for (std::uint64_t bit = 0; bit < place_bits; ++bit) {
        const std::uint64_t at = i * place_bits + bit;
        place |= (std::to_integer<std::uint64_t>(places[at / 8]) >> (at % 8) & 1) << bit;
      }
      if (place >= values) refuse();
    }
  }

  std::uint64_t pixels() const { return tile_.width * tile_.height; }

  std::span<const std::byte> blob_;
  const LercTile& tile_;
  std::size_t at_ = 0;
  std::uint64_t version_ = 0, depth_ = 0, valid_ = 0, block_ = 0;
  bool is_lossless_ = false, is_constant_ = false;
  std::vector<std::byte> mask_;  ///< a bit for each pixel, the highest first; empty: all are valid
};

}  // namespace

void check_lerc_tile(std::span<const std::byte> bytes, int packing, const LercTile& tile) {
  std::vector<std::byte> own;
  if (packing == LERC_ADD_COMPRESSION_DEFLATE) own = inflated_blob(bytes, most_of_blob(tile));
  if (packing == LERC_ADD_COMPRESSION_ZSTD) own = zstd_blob(bytes, most_of_blob(tile));
  LercWalk(packing == LERC_ADD_COMPRESSION_NONE ? bytes : own, tile).check();
}

}  // namespace slidestream
