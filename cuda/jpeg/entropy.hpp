#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg/jpeg_coding.hpp"
#include "cuda/jpeg/word_bits.hpp"

/// \file
/// The entropy decoder, from one source for the device and for the host: tables, and the step that decodes one symbol.
///
/// All that a step reads and writes lies in an *arena*: the shared memory of a thread block, or a vector on the host.
/// Addresses are bytes from its beginning (on the device: addresses of shared memory). A step has no branches, only
/// predicates, and takes at least one bit, so that its number is bounded by the length of the data. Nothing that a
/// stream holds leads outside the arena: table entries are below 2^16, zigzag indices below 256.

namespace slidestream::cuda {

/// How blocks are handed from the entropy decoder to the inverse transform.
enum class LaneMode : std::uint8_t {
  pairs,             ///< two luminance blocks side by side
  single,            ///< one luminance block
  rgb,               ///< a block of each of the three components
  component_pairs,   ///< two blocks one after the other, of whatever components: all are wanted, for RGB
  component_blocks,  ///< one block of whatever component
};
inline constexpr std::uint32_t lane_modes = 5;

/// Components are kept apart, for what makes RGB of them.
constexpr SLIDESTREAM_HOST_DEVICE bool keeps_components(LaneMode mode) {
  return mode == LaneMode::component_pairs || mode == LaneMode::component_blocks;
}

constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t blocks_per_event(LaneMode mode) {
  return mode == LaneMode::pairs || mode == LaneMode::component_pairs ? 2 : mode == LaneMode::rgb ? 3 : 1;
}

/// MCUs after which the events repeat: a pair of blocks may come from two.
SLIDESTREAM_HOST_DEVICE std::uint32_t mcus_per_cycle(LaneMode mode, const JpegCoding& coding) {
  if (mode == LaneMode::component_pairs) return coding.block_count % 2 == 0 ? 1 : 2;
  return mode == LaneMode::pairs && coding.horizontal == 1 ? 2 : 1;
}

/// An entry of the lookup: bits 0-4 length of the code, 8-12 length of code and value, 16-21 32 - length of the value,
/// 24-31 how far the zigzag index advances. A length of 0 marks a link: the address of a second table in bits 8-31.
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t lookup_entry(std::uint32_t code, std::uint32_t value,
                                                             std::uint32_t advance) {
  return code | (code + value) << 8 | (32 - value) << 16 | advance << 24;
}

// From index k, a coefficient leads to 79 at most, the end of a block to 81..143, and what is no code to 144..207. The
// zigzag table tells them apart: see `zigzag_entry`.
inline constexpr std::uint32_t end_of_block_advance = 80;
inline constexpr std::uint32_t bad_code_advance = 144;
inline constexpr std::uint32_t idle_entry = lookup_entry(1, 0, 0) & 0xFFFF00FFU;  // takes nothing, does nothing

/// What the 16 bits that come next mean.
SLIDESTREAM_HOST_DEVICE std::uint32_t entry_for(const HuffmanCode& code, std::uint32_t bits) {
  std::uint32_t length = 1;
  while (length <= 16 && bits >= code.limit[length - 1]) ++length;
  if (length > 16) return lookup_entry(16, 1, bad_code_advance);
  const std::uint32_t value =
      code.values[static_cast<std::uint32_t>(static_cast<int>(bits >> (16 - length)) + code.base[length - 1]) & 255U];
  if (code.is_dc != 0) return lookup_entry(length, value & 15U, 1);
  const std::uint32_t run = value >> 4;
  const std::uint32_t size = value & 15U;
  return lookup_entry(length, size, size != 0 ? run + 1 : run == 15 ? 16 : end_of_block_advance);
}

/// Word `i` of a coding's lookup, which lies at `address` (a multiple of 256).
SLIDESTREAM_HOST_DEVICE std::uint32_t lookup_word(const JpegCoding& coding, std::uint32_t i, std::uint32_t address) {
  std::uint32_t c = i / primary_words;
  if (c < coding.code_count) {
    const HuffmanCode& code = coding.codes[c];
    const std::uint32_t prefix = i % primary_words;
    if (prefix < code.first_long || prefix >= code.end_long) return entry_for(code, prefix * secondary_words);
    return (address + 4 * (code.long_words + (prefix - code.first_long) * secondary_words)) << 8;
  }
  c = coding.code_count - 1U;
  while (i < coding.codes[c].long_words) --c;
  const HuffmanCode& code = coding.codes[c];
  return entry_for(code, code.first_long * secondary_words + (i - code.long_words));
}

/// What is done with a coefficient: stored, times the negated quantiser, at an offset within the lane's blocks.
struct ZigzagEntry {
  std::uint32_t offset;
  std::int32_t negated_quantiser;
};

inline constexpr std::uint32_t zigzag_entries = 256;
inline constexpr std::uint32_t zigzag_bytes = 8 * zigzag_entries;  // each region is aligned to that
inline constexpr std::uint32_t zigzag_past_block = 0xC0 * 8;       // bits of an address whose index is 64 or more

/// A lane's coefficient blocks are followed by 16 bytes; the third word of them isn't zero after an error.
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t lane_block_bytes(LaneMode mode) {
  return 128 * blocks_per_event(mode) + 16;
}
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t error_offset(LaneMode mode) { return 128 * blocks_per_event(mode) + 8; }

/// Regions of the zigzag table: one for each block of an event, and one for blocks that are dropped. Where components
/// are kept apart, one for each block of an event and component.
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t zigzag_regions(LaneMode mode) {
  if (keeps_components(mode)) return 3 * blocks_per_event(mode);
  return blocks_per_event(mode) + (mode == LaneMode::rgb ? 0 : 1);
}

SLIDESTREAM_HOST_DEVICE std::uint32_t natural_order(std::uint32_t k) {
  // Diagonals of an 8 x 8 block, by turns upwards and downwards.
  std::uint32_t sum = 0;
  std::uint32_t before = 0;
  while (true) {
    const std::uint32_t length = sum < 8 ? sum + 1 : 15 - sum;
    if (k < before + length) break;
    before += length;
    ++sum;
  }
  const std::uint32_t step = k - before + (sum < 8 ? 0 : sum - 7);
  const std::uint32_t row = sum % 2 == 0 ? sum - step : step;
  return row * 8 + (sum - row);
}

/// Entry `i` of region `region`. Blocks lie transposed, 16 bits a coefficient, so that a column is 16 bytes in a row.
SLIDESTREAM_HOST_DEVICE ZigzagEntry zigzag_entry(const JpegCoding& coding, LaneMode mode, std::uint32_t region,
                                                 std::uint32_t i) {
  const bool error = (i >= 64 && i < 80) || i >= 143;
  if (error) return {error_offset(mode), -1};
  const std::uint32_t block = keeps_components(mode) ? region / 3 : region;
  if (i >= 64 || block >= blocks_per_event(mode)) return {0, 0};
  const std::uint32_t natural = natural_order(i);
  const std::uint32_t component = mode == LaneMode::rgb ? region : keeps_components(mode) ? region % 3 : 0;
  return {128 * block + ((natural & 7U) * 8 + (natural >> 3)) * 2,
          -static_cast<std::int32_t>(coding.quantisation[component][i])};
}

/// One block of the cycle that a lane goes through: what to decode it with.
struct alignas(16) CycleEntry {
  std::uint32_t dc;  ///< address of its DC lookup
  std::uint32_t ac;
  std::uint32_t zigzag;  ///< address of its region
  std::uint32_t then;  ///< bit 0: the lane waits for the inverse transform at its end; bits 16-31: address of the next
};

inline constexpr std::uint32_t cycle_bytes = 512;  ///< twice `JpegCoding::most_blocks` entries find room

/// Where things lie in an arena that begins at `base`, a multiple of 2048.
struct ArenaLayout {
  std::uint32_t zigzag;
  std::uint32_t cycle;
  std::uint32_t lookup;
  std::uint32_t lanes;
};

SLIDESTREAM_HOST_DEVICE ArenaLayout arena_layout(LaneMode mode, std::uint32_t lookup_words, std::uint32_t base) {
  const std::uint32_t cycle = base + zigzag_regions(mode) * zigzag_bytes;
  const std::uint32_t lookup = cycle + cycle_bytes;
  return {base, cycle, lookup, lookup + (4 * lookup_words + 127) / 128 * 128};
}

/// Entry `i` of the cycle.
SLIDESTREAM_HOST_DEVICE CycleEntry cycle_entry(const JpegCoding& coding, LaneMode mode, const ArenaLayout& layout,
                                               std::uint32_t i) {
  const std::uint32_t count = coding.block_count * mcus_per_cycle(mode, coding);
  const std::uint32_t per_event = blocks_per_event(mode);
  const JpegCoding::Block block = coding.blocks[i % coding.block_count];
  const bool all = mode == LaneMode::rgb || keeps_components(mode);
  std::uint32_t wanted_before = 0;
  for (std::uint32_t j = 0; j < i; ++j) {
    if (all || coding.blocks[j % coding.block_count].component == 0) ++wanted_before;
  }
  const bool wanted = all || block.component == 0;
  std::uint32_t region = per_event;  // the one for blocks that are dropped
  if (wanted) region = mode == LaneMode::rgb ? block.component : wanted_before % per_event;
  if (keeps_components(mode)) region = 3 * (i % per_event) + block.component;
  const std::uint32_t waits = wanted && wanted_before % per_event == per_event - 1 ? 1 : 0;
  const std::uint32_t next = layout.cycle + 16 * (i + 1 == count ? 0 : i + 1);
  return {layout.lookup + 4 * primary_words * block.dc, layout.lookup + 4 * primary_words * block.ac,
          layout.zigzag + zigzag_bytes * region, waits | next << 16};
}

// The following are what a step is made of, each one instruction on the device: compilers rather shift and mask.

/// sum + byte `byte` of word * weight.
template <int byte, int weight>
SLIDESTREAM_HOST_DEVICE std::uint32_t add_byte(std::uint32_t sum, std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __dp4a(word, static_cast<std::uint32_t>(weight) << (8 * byte), sum);
#else
  return sum + (word >> (8 * byte) & 255U) * static_cast<std::uint32_t>(weight);
#endif
}

/// Where in a table of words the first `primary_bits` of a window lead.
SLIDESTREAM_HOST_DEVICE std::uint32_t lookup_address(std::uint32_t table, std::uint32_t window) {
#if defined(__CUDA_ARCH__)
  std::uint32_t address;
  asm("{ .reg .u32 i; shr.u32 i, %1, %3; mad.lo.u32 %0, i, 4, %2; }"
      : "=r"(address)
      : "r"(window), "r"(table), "n"(32 - primary_bits));
  return address;
#else
  return table + (window >> (32 - primary_bits)) * 4;
#endif
}

/// The value's bits, as they are where the sign is all ones, else inverted, moved to the right end by the count in byte
/// 2 of a lookup's entry.
SLIDESTREAM_HOST_DEVICE std::uint32_t magnitude_of(std::uint32_t bits, std::uint32_t sign, std::uint32_t symbol) {
#if defined(__CUDA_ARCH__)
  std::uint32_t result;
  asm("{ .reg .u32 t; lop3.b32 t, %1, %2, 0, 0xC3; shr.u32 %0, t, %3; }"
      : "=r"(result)
      : "r"(bits), "r"(sign), "r"(__byte_perm(symbol, 0, 0x4442)));
  return result;
#else
  const std::uint32_t count = symbol >> 16 & 255U;
  return count >= 32 ? 0 : ~(bits ^ sign) >> count;
#endif
}

/// One sequential decoder. Positions are bits from the beginning of the ring's first 16-byte chunk, plus 32.
struct EntropyLane {
  static constexpr std::uint32_t waiting = 1;   ///< an event's blocks are complete
  static constexpr std::uint32_t finished = 2;  ///< all blocks were decoded
  static constexpr std::uint32_t ring_bytes = 128;
  static constexpr std::uint32_t ring_chunks = 8;

  std::uint32_t state = finished;    ///< 0: decoding
  std::uint32_t entry = idle_entry;  ///< of the lookup, for the next symbol
  std::uint32_t window = 0;          ///< the next 32 bits
  std::uint32_t position = 32;
  std::uint32_t refill = 64;  ///< position at which the words move on
  std::uint32_t word0 = 0;    ///< those that the window begins and ends in, and the one after
  std::uint32_t word1 = 0;
  std::uint32_t word2 = 0;
  std::uint32_t zigzag = 0;  ///< address in the zigzag table
  std::uint32_t ac = 0;
  std::uint32_t waits = 0;
  std::uint32_t left = 0;  ///< blocks
  CycleEntry next{};

  /// Starts at bit `start` of the ring's first chunk (below 128), whose words are there, with the cycle's first block.
  template <class Memory>
  SLIDESTREAM_HOST_DEVICE void begin(Memory& memory, std::uint32_t ring, std::uint32_t cycle, std::uint32_t start,
                                     std::uint32_t blocks) {
    position = 32 + start;
    refill = (position & ~31U) + 32;
    const std::uint32_t word = start / 32;
    word0 = memory.load(ring + 4 * word);
    word1 = memory.load(ring + 4 * (word + 1));
    word2 = memory.load(ring + 4 * (word + 2));
    window = funnel_left(word0, word1, position);
    left = blocks;
    state = blocks != 0 ? 0 : finished;
    memory.load_cycle_if(true, cycle, next);
    entry = memory.load(next.dc + 4 * (window >> (32 - primary_bits)));
    ac = next.ac;
    zigzag = next.zigzag;
    waits = next.then & 1U;
    memory.load_cycle_if(true, next.then >> 16, next);
  }

  /// Decodes one symbol, if the state says so. `blocks` is the address of the lane's coefficient blocks.
  template <class Memory>
  SLIDESTREAM_HOST_DEVICE void step(Memory& memory, std::uint32_t ring, std::uint32_t blocks) {
    const bool running = state == 0;
    std::uint32_t symbol = running ? entry : idle_entry;
    const bool link = (symbol & 31U) == 0;
    symbol = memory.load_if(link, (window >> 14 & (4 * (secondary_words - 1))) | symbol >> 8, symbol);
    position = add_byte<1, 1>(position, symbol);
    zigzag = add_byte<3, 8>(zigzag, symbol);
    const std::uint32_t bits = funnel_left(window, 0, symbol);  // the value's, and what follows
    const ZigzagEntry place = memory.load_zigzag(zigzag - 8);
    const bool moved = position >= refill;
    word0 = moved ? word1 : word0;
    word1 = moved ? word2 : word1;
    refill = moved ? refill + 32 : refill;
    window = funnel_left(word0, word1, position);
    const bool ended = (zigzag & zigzag_past_block) != 0;
    entry = memory.load_if(running, lookup_address(ended ? next.dc : ac, window), entry);
    word2 = memory.load_if(moved, ring | (refill >> 3 & (ring_bytes - 4)), word2);
    const std::uint32_t sign = 0U - (bits >> 31);  // all ones: the value is positive
    const std::uint32_t magnitude = magnitude_of(bits, sign, symbol);
    std::int32_t product = static_cast<std::int32_t>(magnitude) * place.negated_quantiser;
    product = product < -32767 ? -32767 : product;
    product *= static_cast<std::int32_t>(sign | 1U);
    memory.store_half_if(product != 0, blocks + place.offset, static_cast<std::uint32_t>(product));
    state = ended ? waits : state;
    left = ended ? left - 1 : left;
    state = ended && left == 0 ? state | finished : state;
    ac = ended ? next.ac : ac;
    zigzag = ended ? next.zigzag : zigzag;
    waits = ended ? next.then & 1U : waits;
    memory.load_cycle_if(ended, next.then >> 16, next);
  }
};

}  // namespace slidestream::cuda
