#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/config.hpp>
#include <slidestream/image.hpp>
#include <vector>

/// \file
/// What the tiles of a batch share: factors of the quantisation, codes, and the bytes around each tile's scan.

namespace slidestream::cuda {

/// Of one quantisation table and one pair of Huffman tables.
struct CodingTables {
  static constexpr std::uint32_t code_words = 17 * 32;
  static constexpr std::uint32_t end_of_block = 1;   ///< index of a code
  static constexpr std::uint32_t sixteen_zeros = 2;  ///< index of a code

  /// In zigzag order; a hair above 1 / (8 q), so that what lies between two multiples goes away from zero, as
  /// libjpeg's division by 8 q has it. 2^-20 is more than a float's error, and too little to matter to anything else.
  float reciprocals[64];
  /// A code from the highest bit on, and 32 + its length in the lowest 6. A coefficient of `size` bits after `run`
  /// zeros is at 32 (run + 1) + 32 - size; a DC difference at (32 - size) modulo 32.
  ///
  /// The 32 saves an instruction. A coefficient is shifted to the highest bits by 32 - size. With that shift, the bits
  /// of code and coefficient are (32 + length) - shift. A shift by the code takes its lowest five bits: the length.
  std::uint32_t codes[code_words];
};

/// For a format, a quality and a size of tiles, taken from the host's encoder: the same tables, the same bytes.
struct EncodeTables {
  /// The standard puts no more around a scan: a frame and a scan of three components take 33 bytes.
  static constexpr std::size_t most_header_bytes = 64;

  /// \param format  luminance_format or rgb_format. \param quality  1 to 100. \param side  of a tile.
  /// \param subsampling  of colour.
  /// \throws Error for anything else, as the host's encoder does.
  EncodeTables(const PixelFormat& format, int quality, int side,
               ChromaSubsampling subsampling = ChromaSubsampling::s420);

  std::vector<std::byte> jpeg_tables;  ///< what TIFF calls JPEGTables
  std::vector<std::byte> header;       ///< of every tile: from SOI to where the scan's data begin
  CodingTables luminance;
  CodingTables chrominance;  ///< zeros for grey
};

}  // namespace slidestream::cuda
