#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg2000/packets.hpp"

/// \file
/// The bytes of a code-block as a plain string of bits for the MQ decoder: pieces joined, stuffing out, ones behind the
/// end (ISO/IEC 15444-1, C.3.4). One source for device and host.

namespace slidestream::cuda {

/// Words of 32 bits that hold a block's bits, the first bit highest. The last is all ones, and stands for all behind.
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t bit_words(std::uint32_t bytes) { return (bytes + 3) / 4 + 1; }

/// A byte after 0xFF has seven bits, and on top a carry: the decoder of the standard adds it to the bits before, when
/// it reads the byte. In a damaged stream earlier decisions depend on that moment. So the carry's place is written
/// behind the bits, in units of `BlockDecoder`'s position; then comes `no_carry` twice. Carries are rare: with more
/// than these, the tile isn't for the device.
inline constexpr std::uint32_t no_carry = 0x7FFFFFFF;
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t most_carries(std::uint32_t bytes) { return bytes / 32 + 2; }

/// Words of both.
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t stream_words(std::uint32_t bytes) {
  return bit_words(bytes) + most_carries(bytes) + 2;
}

/// Words of 16 bytes that lie at a multiple of 16.
struct Chunk {
  std::uint32_t words[4];
};

SLIDESTREAM_HOST_DEVICE Chunk load_chunk(const std::uint8_t* at) {
#if defined(__CUDA_ARCH__)
  const uint4 loaded = *reinterpret_cast<const uint4*>(at);
  return {{loaded.x, loaded.y, loaded.z, loaded.w}};
#else
  Chunk chunk;
  std::memcpy(chunk.words, at, sizeof(chunk.words));
  return chunk;
#endif
}

/// Takes bytes, gives words.
class BitJoiner {
 public:
  SLIDESTREAM_HOST_DEVICE BitJoiner(std::uint32_t* out, std::uint32_t bytes)
      : out_(out), carries_(out + bit_words(bytes)), most_carries_(most_carries(bytes)) {}

  /// Not once `stopped`: the string ends at the first marker.
  SLIDESTREAM_HOST_DEVICE bool stopped() const { return stopped_; }
  SLIDESTREAM_HOST_DEVICE void put(std::uint32_t byte) {
    if (after_ff_ && byte > 0x8F) {
      stopped_ = true;
      return;
    }
    if (after_ff_ && byte > 0x7F) {
      if (carry_count_ < most_carries_) carries_[carry_count_] = 32 * written_ + count_ + 16;
      ++carry_count_;
    }
    const std::uint32_t bits = after_ff_ ? 7 : 8;
    waiting_ = waiting_ << bits | (byte & ((1U << bits) - 1));
    count_ += bits;
    after_ff_ = byte == 0xFF;
    if (count_ >= 32) emit();
  }

  /// Four bytes of memory at once, where none is 0xFF and none stood before.
  SLIDESTREAM_HOST_DEVICE bool put_word(std::uint32_t word) {
    const bool has_ff = ((~word - 0x01010101U) & word & 0x80808080U) != 0;
    if (after_ff_ || stopped_ || has_ff) return false;
    waiting_ = waiting_ << 32 | (word << 24 | (word & 0xFF00U) << 8 | (word >> 8 & 0xFF00U) | word >> 24);
    count_ += 32;
    emit();
    return true;
  }

  /// Fills up what is left. \returns whether there were few carries.
  SLIDESTREAM_HOST_DEVICE bool finish() {
    if (count_ > 0) {
      out_[written_++] = static_cast<std::uint32_t>(waiting_ << (32 - count_)) | (0xFFFFFFFFU >> count_);
    }
    while (out_ + written_ < carries_) out_[written_++] = 0xFFFFFFFFU;
    if (carry_count_ > most_carries_) return false;
    carries_[carry_count_] = carries_[carry_count_ + 1] = no_carry;
    return true;
  }

 private:
  SLIDESTREAM_HOST_DEVICE void emit() {
    count_ -= 32;
    out_[written_++] = static_cast<std::uint32_t>(waiting_ >> count_);
    waiting_ &= (std::uint64_t{1} << count_) - 1;
  }

  std::uint32_t* out_;
  std::uint32_t* carries_;
  std::uint32_t most_carries_;
  std::uint32_t carry_count_ = 0;
  std::uint64_t waiting_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t written_ = 0;
  bool after_ff_ = false;
  bool stopped_ = false;
};

/// Writes the `stream_words(block.length)` words of a block. `compressed` is aligned to 16 bytes, as is its end.
/// \returns false where there are too many carries.
SLIDESTREAM_HOST_DEVICE bool join_block(const std::uint8_t* compressed, const Jpeg2000Block& block,
                                        const BlockPiece* pool, std::uint32_t* out) {
  BitJoiner joiner(out, block.length);
  BlockPiece piece = block.first;
  while (!joiner.stopped()) {
    const std::uint32_t end = piece.offset + piece.length;
    std::uint32_t at = piece.offset & ~15U;
    // A chunk ahead. An empty piece has none.
    Chunk next = at < end ? load_chunk(compressed + at) : Chunk{};
    for (; at < end && !joiner.stopped(); at += 16) {
      const Chunk chunk = next;
      if (at + 16 < end) next = load_chunk(compressed + at + 16);
      for (std::uint32_t w = 0; w < 4; ++w) {
        const std::uint32_t from = at + 4 * w;
        if (from >= piece.offset && from + 4 <= end && joiner.put_word(chunk.words[w])) continue;
        for (std::uint32_t i = 0; i < 4; ++i) {
          if (from + i >= piece.offset && from + i < end && !joiner.stopped()) {
            joiner.put(chunk.words[w] >> (8 * i) & 0xFFU);
          }
        }
      }
    }
    if (piece.next == 0) break;
    piece = pool[piece.next - 1];
  }
  return joiner.finish();
}

}  // namespace slidestream::cuda
