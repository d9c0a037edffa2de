#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/tile_rule.hpp"

/// \file
/// What the header of a JPEG says, as far as the GPU's decoder must know it. Nothing is copied: tables are references
/// into the bytes that were parsed, and the scan's data aren't looked at.

namespace slidestream::cuda {

/// Why a tile isn't decoded on the device, or why the device doesn't vouch for what it decoded. The CPU's decoder then
/// says what the tile is: "not for the device" doesn't mean bad.
enum class JpegReason : std::uint32_t {
  none,
  // Said by the parser.
  not_a_jpeg,      ///< no SOI where the bytes begin
  damaged_header,  ///< segments that don't add up, bytes between them, a table that libjpeg wouldn't take
  other_coding,    ///< progressive, lossless, hierarchical, arithmetic
  precision,       ///< not 8 bits
  components,      ///< neither one nor three, or not what the slide's colour asks for
  colours,         ///< what the tag and the tile say of colours can't be told apart
  sampling,        ///< luminance isn't the component sampled most densely; RGB of several blocks per MCU and component
  several_scans,   ///< the first scan doesn't hold all components
  missing_table,   ///< libjpeg-turbo would take its default tables
  unusual_table,   ///< DC categories above 11, or codes so long that their lookup doesn't fit the device's memory
  size,            ///< not the tile's size, or the frame doesn't hold the rectangle that is wanted
  odd_marker,      ///< a marker that stands in few files: DNL, DAC, RSTn in the header and the like
  no_room,         ///< the batch has no room for it (tiles, table sets, segments, compressed bytes)
  // Said by the device.
  bad_code,      ///< bits that are no code, or a coefficient past the 63rd
  out_of_range,  ///< coefficients so large that libjpeg-turbo's own versions disagree on them
  wrong_length,  ///< data ended early, or are left over
  wrong_marker,  ///< the scan ends with something else than EOI, or a restart marker isn't where it belongs
};

const char* describe(JpegReason reason) noexcept;

/// Table segments by destination, as they stand in the file: a Huffman table is its 16 counts and the values, a
/// quantisation table its 64 values in zigzag order.
struct JpegTableReferences {
  std::array<const std::byte*, 4> dc{};
  std::array<const std::byte*, 4> ac{};
  std::array<const std::byte*, 4> quantisation{};
  std::array<std::uint8_t, 4> wide{};  ///< quantisation values of 16 bits, big-endian

  bool operator==(const JpegTableReferences&) const = default;
};

/// The tables of a JPEGTables tag; references into `bytes`, which must stay. Empty bytes, or too few for a table, are
/// no tables. \returns the reason why tiles with these tables aren't for the device.
JpegReason parse_jpeg_tables(std::span<const std::byte> bytes, JpegTableReferences& tables) noexcept;

struct JpegComponent {
  std::uint8_t id;
  std::uint8_t horizontal;  ///< sampling factors
  std::uint8_t vertical;
  std::uint8_t quantisation;  ///< destinations of its tables
  std::uint8_t dc;
  std::uint8_t ac;

  bool operator==(const JpegComponent&) const = default;
};

struct JpegHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t component_count = 0;
  std::array<JpegComponent, 3> components{};  ///< all of them are in the scan, in this order
  std::uint32_t restart_interval = 0;         ///< MCUs; 0: none
  std::size_t scan_offset = 0;                ///< where the scan's data begin
  JpegTableReferences tables;
  JpegMarks marks;  ///< what the segments of applications say
};

/// Parses a tile's bytes up to the scan's data. `tables` are those of the level, or none. Reads nothing outside
/// `bytes`. \returns JpegReason::none when `header` is filled.
JpegReason parse_jpeg_header(std::span<const std::byte> bytes, const JpegTableReferences& tables,
                             JpegHeader& header) noexcept;

/// The same for a tile of which the slide asks something: the rule that the CPU's decoder asks must take it, too.
/// `pixels_of` is what the pixels are of it.
JpegReason parse_jpeg_tile(std::span<const std::byte> bytes, const JpegTableReferences& tables,
                           const TileDemand& demand, JpegHeader& header, PixelsOf& pixels_of) noexcept;

/// Bytes from a tile's beginning to its scan's data: what the two functions here look at. Of what isn't a whole header
/// the part up to where it goes wrong.
std::size_t jpeg_header_length(std::span<const std::byte> bytes) noexcept;

}  // namespace slidestream::cuda
