#pragma once

#include <cstdint>

#include "cuda/encode/encode_tables.hpp"
#include "cuda/encode/forward_dct.hpp"
#include "cuda/encode/words.hpp"

/// \file
/// A thread's block of 8 x 8 samples: transform, quantisation, Huffman coding.
///
/// A block has a *column*: words of shared memory that lie `step` apart, so that neighbouring threads' words lie side
/// by side. First it holds the coefficients that aren't zero, then, in the same place, the block's bits.

namespace slidestream::cuda {

/// Words of a column. A block has at most 63 coefficients besides DC. They begin in the second word, and one beyond the
/// last may be read. Bits never overtake the coefficients still to be read: those before the i-th is coded are at most
/// 22 + 26 i + 33 (a DC difference, coefficients, three times sixteen zeros), and i + 2 words have been read.
inline constexpr std::uint32_t column_words = 65;

/// Bits of a block: a DC difference has at most 22, a coefficient 26.
inline constexpr std::uint32_t most_block_bits = 22 + 63 * 26;

/// Where in a block the coefficients lie in zigzag order.
SLIDESTREAM_HOST_DEVICE constexpr int zigzag_place(int i) {
  constexpr std::uint8_t places[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                       12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                       35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                       58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
  return places[i];
}

/// A coefficient in the list: `bits_origin` + value + 2048 - 4096 times its zigzag position. That is what the bits of a
/// float come to when it is quantised, so position and value cost nothing.
inline constexpr std::uint32_t entry_bias = 2048;
SLIDESTREAM_HOST_DEVICE constexpr std::uint32_t zero_entry(int position) {
  return bits_origin + entry_bias - 4096U * static_cast<std::uint32_t>(position);
}
/// The float that has its bits.
SLIDESTREAM_HOST_DEVICE constexpr float float_of_entry(int position) {
  return float_origin + static_cast<float>(static_cast<int>(entry_bias) - 4096 * position);
}

/// Coefficients that are looked at together, and from which position on that pays.
inline constexpr int group_size = 8;
inline constexpr int first_seldom = 40;

/// Transforms and quantises a block's samples, two words a row. The coefficients that aren't zero go to the column from
/// its second word on. \returns where the list ends. \param dc  the quantised first coefficient.
template <int step>
SLIDESTREAM_HOST_DEVICE WordPlace quantise_block(const WordPair (&samples)[8], const float* reciprocals,
                                                 WordPlace column, std::int32_t& dc) {
  std::uint32_t values[64];
  SLIDESTREAM_UNROLL
  for (int y = 0; y < 8; ++y) forward_dct_row(samples[y], values + 8 * y);
  SLIDESTREAM_UNROLL
  for (int x = 0; x < 8; ++x) forward_dct_column(values + x);
  WordPlace end = column;
  end.advance(step);
  SLIDESTREAM_UNROLL
  for (int group = 0; group < 64 / group_size; ++group) {
    const int first = group * group_size;
    std::uint32_t entries[group_size];
    std::uint32_t found = 0;
    SLIDESTREAM_UNROLL
    for (int i = 0; i < group_size; ++i) {
      const float value = as_float(values[zigzag_place(first + i)] + bits_origin) - float_origin;
      entries[i] = as_bits(fused(value, reciprocals[first + i], float_of_entry(first + i)));
      if (first + i > 0) found |= entries[i] ^ zero_entry(first + i);
    }
    if (group == 0) dc = static_cast<std::int32_t>(entries[0] - zero_entry(0));
    // Neighbouring blocks seldom have any of the last coefficients: a look at all of them saves looking at each.
    if (first >= first_seldom && found == 0) continue;
    SLIDESTREAM_UNROLL
    for (int i = group == 0 ? 1 : 0; i < group_size; ++i) {
      if (entries[i] != zero_entry(first + i)) {
        end.write(entries[i]);
        end.advance(step);
      }
    }
  }
  return end;
}

/// Appends codes to a column.
template <int step>
class BitWriter {
 public:
  SLIDESTREAM_HOST_DEVICE explicit BitWriter(WordPlace column) : at_(column) {}

  /// The first `length` bits of a word whose other bits are zero; at most 32.
  SLIDESTREAM_HOST_DEVICE void put(std::uint32_t bits, std::uint32_t length) {
    const std::uint32_t count = count_ + length;
    const std::uint32_t rest = shifted_out(bits, count_);
    word_ |= shifted_right(bits, count_);
    if (((count ^ count_) & 32U) != 0) {
      at_.write(word_);
      at_.advance(step);
      word_ = rest;
    }
    count_ = count;
  }
  SLIDESTREAM_HOST_DEVICE void put_code(std::uint32_t code) { put(code & ~63U, code & 31U); }

  /// Writes what there is of the last word. \returns the number of bits.
  SLIDESTREAM_HOST_DEVICE std::uint32_t finish() {
    if ((count_ & 31U) != 0) at_.write(word_);
    return count_;
  }

 private:
  WordPlace at_;
  std::uint32_t word_ = 0;
  std::uint32_t count_ = 0;
};

/// Codes a block whose list goes to `end`. \param difference  of its DC coefficient from the one before. \param codes
/// of CodingTables. \returns how many bits the column now begins with.
template <int step>
SLIDESTREAM_HOST_DEVICE std::uint32_t code_block(std::int32_t difference, WordPlace column, WordPlace end,
                                                 WordPlace codes) {
  BitWriter<step> bits(column);
  {
    const std::uint32_t magnitude = static_cast<std::uint32_t>(difference < 0 ? -difference : difference);
    const std::uint32_t shift = leading_zeros(magnitude);
    const std::uint32_t code = codes.read(4 * (shift & 31U));
    // A negative value's bits are those of the value less one.
    const std::uint32_t value = shift == 32 ? 0 : static_cast<std::uint32_t>(difference + (difference >> 31)) << shift;
    bits.put((code & ~63U) | shifted_right(value, code), (code & 31U) + 32 - shift);
  }
  std::uint32_t before = bits_origin;  // less 4096 times the position
  WordPlace next = column;
  next.advance(step);
  std::uint32_t entry = next.read();
  SLIDESTREAM_TWICE
  while (!(next == end)) {
    const std::uint32_t at = entry & ~4095U;
    std::uint32_t distance = before - at;  // 4096 (run + 1)
    const auto value = static_cast<std::int32_t>(entry - at - entry_bias);
    before = at;
    next.advance(step);
    entry = next.read();
    SLIDESTREAM_ROLLED
    for (; distance > 16U * 4096; distance -= 16U * 4096) bits.put_code(codes.read(4 * CodingTables::sixteen_zeros));
    const std::int32_t coded = value + (value >> 31);
    const std::uint32_t shift = shift_to_top(coded);
    const std::uint32_t code = codes.read((distance >> 5) + 4 * shift);
    bits.put((code & ~63U) | shifted_right(static_cast<std::uint32_t>(coded) << shift, code), (code & 63U) - shift);
  }
  if (before != bits_origin - 63U * 4096) bits.put_code(codes.read(4 * CodingTables::end_of_block));
  return bits.finish();
}

}  // namespace slidestream::cuda
