#pragma once

#include <array>
#include <cstdint>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg2000/codestream_header.hpp"

/// \file
/// Everything that tiles with equal main headers have in common, worked out once: where bands, precincts and
/// code-blocks lie (ISO/IEC 15444-1, annex B), and the order of the packets. The device reads it as it is.

namespace slidestream::cuda {

inline constexpr std::uint32_t most_precincts = 512;        ///< of all components
inline constexpr std::uint32_t most_precinct_bands = 1280;  ///< precincts by band
inline constexpr std::uint32_t most_packets = 4096;
inline constexpr std::uint32_t most_blocks = 4096;  ///< code-blocks of all components
inline constexpr std::uint32_t most_component_blocks = 1024;
inline constexpr std::uint32_t most_small_blocks = 512;  ///< of a component, for the quickest kernels
inline constexpr std::uint32_t most_tag_nodes = 6144;
inline constexpr std::uint32_t most_layers = 200;

inline constexpr std::uint32_t most_decoded_components = 3;
inline constexpr std::uint32_t most_decoded_bands = most_decoded_components * most_jpeg2000_bands;

/// A component that is decoded.
struct DecodedComponent {
  std::uint16_t width;  ///< samples
  std::uint16_t height;
  std::uint16_t first_block;  ///< of the tile
  std::uint16_t blocks;
  std::uint8_t levels;
  std::uint8_t first_band;  ///< of the tile
  std::uint8_t dx;          ///< image columns a sample
  std::uint8_t dy;

  /// Areas of the size of a small tile that its samples take, at most.
  constexpr std::uint32_t areas() const {
    constexpr std::uint32_t area = small_jpeg2000_side * small_jpeg2000_side;
    return (std::uint32_t{width} * height + area - 1) / area;
  }
  constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t bands() const { return 1U + 3U * levels; }
};

/// A band of a component that is decoded: LL first, then HL, LH and HH of each resolution.
struct Jpeg2000Band {
  float half_step;      ///< half of the quantisation step; 9/7 only
  std::uint16_t width;  ///< samples
  std::uint16_t height;
  std::uint16_t first_block;  ///< of the tile; blocks of a band are in raster order
  std::uint16_t blocks_across;
  std::uint8_t block_width_log;
  std::uint8_t block_height_log;
  std::uint8_t orientation;  ///< of the zero coding contexts (table D.1): 0 LL and LH, 1 HL, 2 HH
  std::uint8_t block_style;  ///< of BlockStyle
};
static_assert(sizeof(Jpeg2000Band) == 16);

/// A precinct's part in a band: a rectangle of the band's grid of code-blocks, with tag trees of its own.
struct PrecinctBand {
  std::uint16_t first_block;  ///< of the tile, over all components
  std::uint16_t stride;       ///< from a row of blocks to the next
  std::uint16_t first_node;   ///< of its tag trees
  std::uint8_t across;        ///< blocks
  std::uint8_t down;
  std::uint8_t bit_planes;  ///< of a block without zero bit planes: guard bits and the step's exponent, less one
  std::uint8_t unused;
};

struct Precinct {
  std::uint16_t first_band;  ///< of the precinct bands
  std::uint16_t bands;
};

struct Packet {
  std::uint16_t precinct;
  std::uint16_t layer;
};

struct alignas(16) Jpeg2000Coding {
  std::uint16_t width;  ///< pixels
  std::uint16_t height;
  std::uint8_t components;  ///< that are decoded, the first ones: 1 or 3
  std::uint8_t reversible;
  std::uint8_t colour_transform;  ///< to be undone, where three components are decoded
  std::uint8_t sop_markers;
  std::uint8_t eph_markers;
  std::uint8_t bands_used;
  std::uint8_t large;        ///< more than the quickest kernels take: of samples or of code-blocks
  std::uint8_t styled;       ///< code-blocks that are decoded have other styles than 0
  std::uint16_t blocks;      ///< of the components that are decoded: the tile's first
  std::uint16_t all_blocks;  ///< of all components
  std::uint16_t nodes;       ///< of all tag trees
  std::uint16_t packet_count;
  std::uint32_t most_bit_planes;  ///< that a block may have, so that sums of coefficients stay exact
  std::array<DecodedComponent, most_decoded_components> decoded;
  std::array<Jpeg2000Band, most_decoded_bands> bands;
  std::array<Packet, most_packets> packets;
  std::array<Precinct, most_precincts> precincts;
  std::array<PrecinctBand, most_precinct_bands> precinct_bands;
};

/// Words that the packet headers of a tile are decoded with.
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t packet_state_words(const Jpeg2000Coding& coding) {
  return coding.nodes + 2U * coding.all_blocks;
}

/// Samples of a line of `size` at resolution `levels_left` levels below the largest.
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t reduced(std::uint32_t size, std::uint32_t levels_left) {
  return (size + (1U << levels_left) - 1) >> levels_left;
}

/// Components that must be decoded for such pixels: 1 or 3.
constexpr std::uint32_t components_for(PixelsOf pixels_of) {
  return pixels_of == PixelsOf::rgb || pixels_of == PixelsOf::ycbcr ? 3 : 1;
}

/// Fills `coding`, for the first `components` to be decoded, of which there are as many. \returns why tiles with these
/// parameters aren't for the device, or none.
Jpeg2000Reason make_coding(const Jpeg2000Parameters& parameters, std::uint32_t components, Jpeg2000Coding& coding);

}  // namespace slidestream::cuda
