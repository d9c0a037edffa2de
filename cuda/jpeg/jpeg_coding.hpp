#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg/jpeg_header.hpp"

/// \file
/// A *coding*: all that tiles with the same tables, sampling and component order have in common, as plain data that
/// travels to the device as it is.

namespace slidestream::cuda {

/// A canonical Huffman code.
struct HuffmanCode {
  std::uint16_t limit[16];  ///< of the codes of length i + 1, left-aligned to 16 bits: the first that is longer
  std::int16_t base[16];    ///< code of length i + 1, right-aligned, plus this: index of its value
  std::uint8_t values[256];
  std::uint16_t first_long;  ///< 10-bit prefixes of codes that are longer than 10 bits: first, and one beyond the last
  std::uint16_t end_long;
  std::uint16_t long_words;  ///< where their sub-tables begin in the lookup
  std::uint16_t is_dc;
};

/// Bits that the first lookup takes, and the second after it.
inline constexpr std::uint32_t primary_bits = 10;
inline constexpr std::uint32_t primary_words = 1U << primary_bits;
inline constexpr std::uint32_t secondary_words = 1U << (16 - primary_bits);

struct JpegCoding {
  static constexpr std::uint32_t most_blocks = 10;       ///< of an MCU, by the standard
  static constexpr std::uint32_t most_codes = 6;         ///< DC and AC of three components
  static constexpr std::uint32_t most_words = 8 * 1024;  ///< of a lookup; usual tables take 5,500

  struct Block {
    std::uint8_t component;  ///< in the frame's order
    std::uint8_t dc;         ///< index of its codes
    std::uint8_t ac;
    std::uint8_t unused;
  };

  /// How a component is sampled: its blocks in an MCU, the first of them.
  struct Component {
    std::uint8_t horizontal;
    std::uint8_t vertical;
    std::uint8_t first_block;
    std::uint8_t unused;
  };

  std::uint8_t mixes_components;  ///< luminance is made of all three components; else of the first alone
  std::uint8_t horizontal;        ///< sampling factors of the first component; 1 x 1 when there is one component
  std::uint8_t vertical;
  std::uint8_t block_count;  ///< of an MCU
  std::uint8_t code_count;
  std::uint8_t uniform;  ///< all blocks of an MCU have the same codes
  std::uint16_t lookup_words;
  std::uint8_t makes_rgb;  ///< all components are decoded, for RGB
  std::uint8_t ycbcr;      ///< components are YCbCr
  std::uint8_t component_count;
  std::uint8_t unused;
  Component components[3];
  Block blocks[most_blocks];  ///< of an MCU, in the scan's order
  std::uint16_t quantisation[3][64];
  HuffmanCode codes[most_codes];
};

/// Makes the coding of a parsed header, for pixels of `format` that are made of `pixels_of`. \returns why there is
/// none.
JpegReason make_jpeg_coding(const JpegHeader& header, const PixelFormat& format, PixelsOf pixels_of,
                            JpegCoding& coding) noexcept;

/// What distinguishes codings, as bytes: equal keys make equal codings.
class JpegCodingKey {
 public:
  JpegCodingKey(const JpegHeader& header, const PixelFormat& format, PixelsOf pixels_of) noexcept;
  std::span<const std::byte> bytes() const noexcept { return {bytes_, size_}; }
  std::uint64_t hash() const noexcept;

 private:
  void append(const void* from, std::size_t size) noexcept;
  void append_code(const std::byte* counts_and_values) noexcept;

  std::size_t size_ = 0;
  std::byte bytes_[24 + 3 * (1 + 128 + 2 * (16 + 256))];
};

}  // namespace slidestream::cuda
