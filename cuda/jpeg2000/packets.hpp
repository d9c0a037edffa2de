#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg2000/coding.hpp"

/// \file
/// The packet headers (ISO/IEC 15444-1, B.10) of one tile: they tell where each code-block's bytes lie. One source for
/// a thread of the device and for the host.

namespace slidestream::cuda {

inline constexpr std::uint32_t most_passes = 109;  ///< of a code-block; with more, OpenJPEG begins a second segment
inline constexpr std::uint32_t most_coded_planes = 16;

/// A code-block's bytes, which may be scattered over packets of several layers.
struct BlockPiece {
  std::uint32_t offset;  ///< bytes from the compressed buffer's base
  std::uint32_t length;
  std::uint32_t next;  ///< piece of the pool, plus one; 0: the last
};

/// A code-block of a component that is decoded.
struct alignas(16) Jpeg2000Block {
  BlockPiece first;
  std::uint32_t length;  ///< of all pieces
  union {
    std::uint32_t last;  ///< piece of the pool, plus one; 0: the first is the last. While packets are read
    std::uint32_t tile;  ///< then, on the device
  };
  std::uint32_t stream;  ///< word where its joined bits begin; this and `planes` are set after `read_packets`
  std::uint32_t planes;  ///< word where its planes begin: signs, pending and bit planes (see block_decoder.hpp)
  std::uint8_t passes;   ///< coding passes that are decoded
  std::uint8_t bit_planes;
  std::uint8_t coded_planes;  ///< those that passes touch, from the top
  std::uint8_t unused;
};
static_assert(sizeof(Jpeg2000Block) == 32);

/// Where pieces beyond a block's first are kept.
struct PiecePool {
  BlockPiece* pieces;
  std::uint32_t* count;
  std::uint32_t capacity;

  SLIDESTREAM_HOST_DEVICE std::uint32_t take() const {
#if defined(__CUDA_ARCH__)
    return atomicAdd(count, 1U);
#else
    return (*count)++;
#endif
  }
};

/// The `packet_state_words` of a tile: a word a node of the tag trees, two a code-block. On the device those of 32
/// tiles are interleaved.
struct PacketState {
  std::uint32_t* words;
  std::uint32_t stride;
  std::uint32_t nodes;
  std::uint32_t blocks;

  SLIDESTREAM_HOST_DEVICE std::uint32_t& node(std::uint32_t i) const { return words[i * stride]; }
  SLIDESTREAM_HOST_DEVICE std::uint32_t& block(std::uint32_t i) const { return words[(nodes + i) * stride]; }
  /// Bytes that the packet under way holds of a block.
  SLIDESTREAM_HOST_DEVICE std::uint32_t& length(std::uint32_t i) const { return words[(nodes + blocks + i) * stride]; }
};

/// Bits of a packet header: a byte after 0xFF holds seven.
class PacketBits {
 public:
  SLIDESTREAM_HOST_DEVICE PacketBits(const std::uint8_t* at, const std::uint8_t* end) : at_(at), end_(end) {}

  SLIDESTREAM_HOST_DEVICE std::uint32_t bit() {
    if (left_ == 0) {
      left_ = last_ == 0xFF ? 7 : 8;
      if (at_ == end_) {
        failed_ = true;
        last_ = 0;
      } else {
        last_ = *at_++;
      }
    }
    return last_ >> --left_ & 1U;
  }
  SLIDESTREAM_HOST_DEVICE std::uint32_t bits(std::uint32_t count) {
    std::uint32_t value = 0;
    for (; count > 0; --count) value = value << 1 | bit();
    return value;
  }
  /// Skips what is left of the last byte, and the stuffed byte after 0xFF. \returns where the header ends.
  SLIDESTREAM_HOST_DEVICE const std::uint8_t* end_of_header() {
    if (last_ == 0xFF) {
      if (at_ == end_) {
        failed_ = true;
      } else {
        ++at_;
      }
    }
    return at_;
  }
  SLIDESTREAM_HOST_DEVICE bool failed() const { return failed_; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::uint32_t last_ = 0;
  std::uint32_t left_ = 0;
  bool failed_ = false;
};

/// A node of both tag trees of a precinct's band: the inclusion tree's value and what is known to lie below it, then
/// those of the zero bit planes.
struct TagNode {
  static constexpr std::uint32_t unknown = 0xFF;
  static constexpr std::uint32_t fresh = unknown | unknown << 16;
  static constexpr std::uint32_t inclusion = 0;  ///< shifts
  static constexpr std::uint32_t zero_planes = 16;
};

/// Whether the value of the leaf at (x, y) is below `threshold`, which is below 255 (B.10.2).
SLIDESTREAM_HOST_DEVICE bool tag_is_below(PacketBits& bits, const PacketState& state, const PrecinctBand& part,
                                          std::uint32_t tree, std::uint32_t x, std::uint32_t y,
                                          std::uint32_t threshold) {
  // From the root down: levels are counted first.
  std::uint32_t levels = 0;
  while ((part.across - 1U) >> levels != 0 || (part.down - 1U) >> levels != 0) ++levels;
  std::uint32_t low = 0;
  std::uint32_t value = 0;
  for (std::uint32_t level = levels + 1; level-- > 0;) {
    std::uint32_t node = part.first_node;
    for (std::uint32_t i = 0; i < level; ++i) {
      node += ((part.across + (1U << i) - 1U) >> i) * ((part.down + (1U << i) - 1U) >> i);
    }
    node += (y >> level) * ((part.across + (1U << level) - 1U) >> level) + (x >> level);
    std::uint32_t word = state.node(node);
    value = word >> tree & 0xFFU;
    const std::uint32_t known = word >> (tree + 8) & 0xFFU;
    low = low > known ? low : known;
    while (low < threshold && low < value) {
      if (bits.bit() != 0) {
        value = low;
      } else {
        ++low;
      }
    }
    word = (word & ~(0xFFFFU << tree)) | (value | low << 8) << tree;
    state.node(node) = word;
  }
  return value < threshold;
}

/// Number of coding passes (table B.4).
SLIDESTREAM_HOST_DEVICE std::uint32_t read_pass_count(PacketBits& bits) {
  if (bits.bit() == 0) return 1;
  if (bits.bit() == 0) return 2;
  std::uint32_t value = bits.bits(2);
  if (value < 3) return 3 + value;
  value = bits.bits(5);
  if (value < 31) return 6 + value;
  return 37 + bits.bits(7);
}

/// Word of a block's state.
struct BlockState {
  static constexpr std::uint32_t fresh = 3;           ///< bits of a length, without those for the passes
  static constexpr std::uint32_t length_bits = 0xFF;  ///< mask
  static constexpr std::uint32_t included = 1U << 8;  ///< in a packet before
  static constexpr std::uint32_t pass_shift = 16;     ///< passes so far
};

/// Appends the packet's bytes of a block to those that it has.
SLIDESTREAM_HOST_DEVICE bool append_piece(Jpeg2000Block& block, const PiecePool& pool, std::uint32_t offset,
                                          std::uint32_t length) {
  if (block.length == 0) {
    block.first = {offset, length, 0};
  } else {
    const std::uint32_t piece = pool.take();
    if (piece >= pool.capacity) return false;
    pool.pieces[piece] = {offset, length, 0};
    (block.last == 0 ? block.first : pool.pieces[block.last - 1]).next = piece + 1;
    block.last = piece + 1;
  }
  block.length += length;
  return true;
}

/// The header of one packet: lengths go into `state`, passes and bit planes into the blocks that are decoded.
SLIDESTREAM_HOST_DEVICE Jpeg2000Reason read_packet_header(PacketBits& bits, const Jpeg2000Coding& coding,
                                                          const Packet& packet, const PacketState& state,
                                                          Jpeg2000Block* blocks) {
  const Precinct precinct = coding.precincts[packet.precinct];
  for (std::uint32_t band = 0; band < precinct.bands; ++band) {
    const PrecinctBand part = coding.precinct_bands[precinct.first_band + band];
    for (std::uint32_t i = 0; i < std::uint32_t{part.across} * part.down; ++i) {
      const std::uint32_t x = i % part.across, y = i / part.across;
      const std::uint32_t number = part.first_block + y * part.stride + x;
      std::uint32_t known = state.block(number);
      const bool first_time = (known & BlockState::included) == 0;
      state.length(number) = 0;
      const bool included =
          first_time ? tag_is_below(bits, state, part, TagNode::inclusion, x, y, packet.layer + 1U) : bits.bit() != 0;
      if (!included) continue;
      if (first_time) {
        std::uint32_t threshold = 1;
        while (!tag_is_below(bits, state, part, TagNode::zero_planes, x, y, threshold)) {
          if (++threshold > 80 || bits.failed()) return Jpeg2000Reason::bit_planes;
        }
        const std::uint32_t zero_planes = threshold - 1;
        if (zero_planes > part.bit_planes || part.bit_planes - zero_planes > coding.most_bit_planes) {
          return Jpeg2000Reason::bit_planes;
        }
        if (number < coding.blocks) {
          blocks[number].bit_planes = static_cast<std::uint8_t>(part.bit_planes - zero_planes);
        }
      }
      const std::uint32_t passes = read_pass_count(bits);
      while (bits.bit() != 0) {
        ++known;
        if ((known & BlockState::length_bits) > 31) return Jpeg2000Reason::bad_packet;
      }
      std::uint32_t length_bits = known & BlockState::length_bits;
      for (std::uint32_t p = passes; p > 1; p >>= 1) ++length_bits;
      if (length_bits > 31 || bits.failed()) return Jpeg2000Reason::bad_packet;
      state.length(number) = bits.bits(length_bits) | 1U << 31;
      known = (known | BlockState::included) + (passes << BlockState::pass_shift);
      if (known >> BlockState::pass_shift > most_passes) return Jpeg2000Reason::bit_planes;
      state.block(number) = known;
    }
  }
  return bits.failed() ? Jpeg2000Reason::bad_packet : Jpeg2000Reason::none;
}

/// What a packet holds of its blocks, from `at` on. \returns the bytes; `reason` other than none: they don't fit.
SLIDESTREAM_HOST_DEVICE std::uint32_t take_packet_body(const Jpeg2000Coding& coding, const Packet& packet,
                                                       const PacketState& state, Jpeg2000Block* blocks,
                                                       const PiecePool& pool, std::uint32_t offset, std::uint32_t room,
                                                       Jpeg2000Reason& reason) {
  std::uint32_t taken = 0;
  const Precinct precinct = coding.precincts[packet.precinct];
  for (std::uint32_t band = 0; band < precinct.bands; ++band) {
    const PrecinctBand part = coding.precinct_bands[precinct.first_band + band];
    for (std::uint32_t i = 0; i < std::uint32_t{part.across} * part.down; ++i) {
      const std::uint32_t number = part.first_block + i / part.across * part.stride + i % part.across;
      const std::uint32_t length = state.length(number) & ~(1U << 31);
      if (length == 0) continue;
      if (length > room - taken) {
        reason = Jpeg2000Reason::bad_packet;
        return taken;
      }
      if (number < coding.blocks && !append_piece(blocks[number], pool, offset + taken, length)) {
        reason = Jpeg2000Reason::out_of_memory;
        return taken;
      }
      taken += length;
    }
  }
  return taken;
}

/// What passes of a block are decoded, once all packets are read.
SLIDESTREAM_HOST_DEVICE Jpeg2000Reason conclude_block(Jpeg2000Block& block, std::uint32_t state) {
  const std::uint32_t most = block.bit_planes > 0 ? 3U * block.bit_planes - 2U : 0U;
  std::uint32_t passes = state >> BlockState::pass_shift;
  passes = passes < most ? passes : most;
  const std::uint32_t coded = passes > 0 ? (passes + 4) / 3 : 0;
  if (coded > most_coded_planes) return Jpeg2000Reason::bit_planes;
  block.passes = static_cast<std::uint8_t>(passes);
  block.coded_planes = static_cast<std::uint8_t>(coded);
  return Jpeg2000Reason::none;
}

/// Reads all packets of a tile. `bytes` is the codestream, at `base` of the compressed buffer; `parts` are its
/// tile-parts, which packets don't cross. Fills `coding.blocks` blocks.
SLIDESTREAM_HOST_DEVICE Jpeg2000Reason read_packets(const std::uint8_t* bytes, std::uint32_t base,
                                                    const Jpeg2000TilePart* parts, std::uint32_t part_count,
                                                    const Jpeg2000Coding& coding, const PacketState& state,
                                                    Jpeg2000Block* blocks, const PiecePool& pool) {
  for (std::uint32_t i = 0; i < coding.nodes; ++i) state.node(i) = TagNode::fresh;
  for (std::uint32_t i = 0; i < coding.all_blocks; ++i) state.block(i) = BlockState::fresh;
  for (std::uint32_t i = 0; i < coding.blocks; ++i) blocks[i] = {};
  std::uint32_t part = 0;
  std::uint32_t at = parts[0].begin;
  std::uint32_t end = parts[0].end;
  Jpeg2000Reason reason = Jpeg2000Reason::none;
  for (std::uint32_t i = 0; i < coding.packet_count; ++i) {
    const Packet packet = coding.packets[i];
    if (at == end) {
      if (++part == part_count) return Jpeg2000Reason::bad_packet;
      at = parts[part].begin;
      end = parts[part].end;
    }
    if (coding.sop_markers != 0) {
      if (end - at < 6 || bytes[at] != 0xFF || bytes[at + 1] != 0x91) return Jpeg2000Reason::bad_packet;
      at += 6;
    }
    PacketBits bits(bytes + at, bytes + end);
    const bool present = bits.bit() != 0;
    if (present) reason = read_packet_header(bits, coding, packet, state, blocks);
    if (reason != Jpeg2000Reason::none) return reason;
    at = static_cast<std::uint32_t>(bits.end_of_header() - bytes);
    if (bits.failed()) return Jpeg2000Reason::bad_packet;
    if (coding.eph_markers != 0) {
      if (end - at < 2 || bytes[at] != 0xFF || bytes[at + 1] != 0x92) return Jpeg2000Reason::bad_packet;
      at += 2;
    }
    if (present) at += take_packet_body(coding, packet, state, blocks, pool, base + at, end - at, reason);
    if (reason != Jpeg2000Reason::none) return reason;
  }
  if (at != end || part + 1 != part_count) return Jpeg2000Reason::left_over;
  for (std::uint32_t i = 0; i < coding.blocks; ++i) {
    reason = conclude_block(blocks[i], state.block(i));
    if (reason != Jpeg2000Reason::none) return reason;
  }
  return Jpeg2000Reason::none;
}

}  // namespace slidestream::cuda
