#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/tile_rule.hpp"

/// \file
/// What the headers of a JPEG 2000 codestream (ISO/IEC 15444-1, annex A) say, as far as the GPU's decoder must know it.
/// Packets aren't looked at.

namespace slidestream::cuda {

/// Why a tile isn't decoded on the device, or why the device doesn't vouch for what it decoded. The CPU's decoder then
/// says what the tile is: "not for the device" doesn't mean bad.
enum class Jpeg2000Reason : std::uint32_t {
  none,
  // Said by the parser.
  not_a_codestream,  ///< the bytes don't begin with SOC and SIZ
  damaged_header,    ///< segments that don't add up, are missing or stand twice
  odd_marker,        ///< a marker that stands in few files: POC, PPM, PPT, RGN, CAP and the like
  precision,         ///< not 8 bits, unsigned
  components,        ///< not one to four, or not what the slide's colour asks for, or the first is subsampled
  size,              ///< not the tile's size, or more than 1024 x 1024, or the frame doesn't hold what is wanted
  grid,              ///< several tiles in the codestream, or an image that doesn't begin at (0, 0)
  levels,            ///< no wavelet transform, or more than six levels
  block_style,       ///< bypass, termination of each pass or that can be predicted, or high throughput
  block_size,        ///< code-blocks larger than 64 x 64, or smaller than 4 x 4 for small precincts
  quantisation,      ///< steps are missing, or don't go with the transform
  too_many_parts,    ///< layers, precincts, code-blocks or tile-parts
  tile_parts,        ///< tile-parts that don't add up, or no EOC behind them
  no_room,           ///< the batch has no room for it
  // Said by the device.
  bad_packet,    ///< a packet that doesn't fit into its tile-part, misses a marker, or says what can't be
  bit_planes,    ///< more bit planes or coding passes than a code-block of 8-bit samples has
  bad_stuffing,  ///< more carries behind 0xFF than encoders write
  left_over,     ///< bytes behind the last packet
  out_of_memory  ///< the batch's code-blocks have more data than the decoder was given memory for
};

const char* describe(Jpeg2000Reason reason) noexcept;

inline constexpr std::uint32_t most_jpeg2000_components = 4;
inline constexpr std::uint32_t most_jpeg2000_levels = 6;
inline constexpr std::uint32_t most_jpeg2000_bands = 1 + 3 * most_jpeg2000_levels;
inline constexpr std::uint32_t most_jpeg2000_side = 1024;       ///< pixels
inline constexpr std::uint32_t small_jpeg2000_side = 256;       ///< of tiles that the quickest kernels take
inline constexpr std::uint32_t most_jpeg2000_tile_parts = 255;  ///< that aren't empty

/// Bits of code-blocks' style that are for the device (table A.19).
struct BlockStyle {
  static constexpr std::uint8_t reset = 2;     ///< contexts begin anew with every pass
  static constexpr std::uint8_t causal = 8;    ///< contexts know nothing of the stripe below
  static constexpr std::uint8_t symbols = 32;  ///< four more decisions end a bit plane
  static constexpr std::uint8_t all = reset | causal | symbols;
};

/// How a component is coded: COD or COC, and QCD or QCC.
struct Jpeg2000Component {
  std::uint8_t dx = 1;  ///< image columns a sample
  std::uint8_t dy = 1;
  std::uint8_t levels = 0;  ///< of the wavelet transform
  std::uint8_t block_width_log = 0;
  std::uint8_t block_height_log = 0;
  std::uint8_t block_style = 0;  ///< of BlockStyle
  bool reversible = false;
  std::uint8_t guard_bits = 0;
  std::array<std::uint8_t, most_jpeg2000_levels + 1> precinct_width_log{};  ///< by resolution, the smallest first
  std::array<std::uint8_t, most_jpeg2000_levels + 1> precinct_height_log{};
  std::array<std::uint16_t, most_jpeg2000_bands> steps{};  ///< exponent << 11 | mantissa, by band; see the coding

  bool operator==(const Jpeg2000Component&) const = default;
};

enum class Progression : std::uint8_t { lrcp, rlcp, rpcl, pcrl, cprl };

/// What decides how packets are laid out and what samples mean: equal for all tiles that an encoder wrote with the same
/// settings.
struct Jpeg2000Parameters {
  std::uint32_t width = 0;  ///< pixels
  std::uint32_t height = 0;
  std::uint32_t component_count = 0;
  std::array<Jpeg2000Component, most_jpeg2000_components> components{};
  Progression progression = Progression::lrcp;
  std::uint32_t layers = 0;
  bool sop_markers = false;
  bool eph_markers = false;
  bool colour_transform = false;  ///< of the first three components: irreversible or reversible as the first is

  bool operator==(const Jpeg2000Parameters&) const = default;
};

/// The packets of a tile-part, bytes of the codestream.
struct Jpeg2000TilePart {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct Jpeg2000Header {
  Jpeg2000Parameters parameters;
  std::size_t main_bytes = 0;  ///< of the main header; tiles for which these are equal have equal parameters
  std::uint32_t part_count = 0;
  std::array<Jpeg2000TilePart, most_jpeg2000_tile_parts> parts{};
};

/// The codestream in `bytes`: all of them, or the contents of a JP2 file's box. Empty where there is none, where boxes
/// don't add up, or say more of the components than that they are an image's.
std::span<const std::byte> find_jpeg2000_codestream(std::span<const std::byte> bytes) noexcept;

/// Parses the headers in `bytes`, a bare codestream. Reads nothing outside `bytes`. Takes only what the CPU's decoder
/// finds nothing wrong with. \returns Jpeg2000Reason::none when `header` is filled.
Jpeg2000Reason parse_jpeg2000_header(std::span<const std::byte> bytes, Jpeg2000Header& header) noexcept;

/// The same where `main` parsed an equal main header before: its parameters are taken.
Jpeg2000Reason parse_jpeg2000_tile_parts(std::span<const std::byte> bytes, std::size_t main_bytes,
                                         Jpeg2000Header& header) noexcept;

/// What a tile's pixels are of its frame, by the rule that the CPU's decoder asks.
Jpeg2000Reason judge_jpeg2000(const Jpeg2000Parameters& parameters, const TileDemand& demand,
                              PixelsOf& pixels_of) noexcept;

}  // namespace slidestream::cuda
