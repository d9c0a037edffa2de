#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/config.hpp>
#include <slidestream/image.hpp>
#include <span>

#include "cuda/encode/band.hpp"
#include "cuda/encode/encode_task.hpp"
#include "cuda/encode/row_band.hpp"

/// \file
/// What a JPEG encoder is made for, how its device memory is divided, and what its kernels are told.
///
/// `JpegEncoder` uses it. The worker that runs a GPU's compute node calls `JpegEncoder::enqueue` once for each level of
/// an image and each run of its tiles. Planning counts the memory of GPUs with it.

namespace slidestream::cuda {

struct JpegEncoderLimits {
  static constexpr std::uint32_t most_side = 1024;

  std::uint32_t tiles = 0;   ///< of a batch
  std::uint32_t side = 256;  ///< of a tile in pixels: a multiple of 16, at most `most_side`
  PixelFormat format;        ///< luminance_format or rgb_format
  ChromaSubsampling subsampling = ChromaSubsampling::s420;
  /// For the bits of a batch's tiles before they are put together: `most_scratch_bytes` for pixels of any kind; an
  /// eighth of the pixels' bytes does for slides up to quality 85.
  std::uint64_t scratch_bytes = 0;
};

using TileGreyBand = GreyBand<128>;

/// Calls `work` with the band of such tiles, as a value of its type.
template <class Work>
constexpr auto with_band(const JpegEncoderLimits& limits, const Work& work) {
  if (limits.format.channels == 1) return work(TileGreyBand());
  if (limits.subsampling == ChromaSubsampling::s422) return work(HalvedBand());
  if (limits.subsampling == ChromaSubsampling::s444) return work(WholeColourBand());
  return work(ColourBand());
}

constexpr TileGrid grid_of(const JpegEncoderLimits& limits) {
  return with_band(limits, [&limits](auto band) {
    using Band = decltype(band);
    return make_tile_grid(limits.side, Band::unit_width, Band::unit_height, Band::units);
  });
}

/// Blocks of an MCU; 1 for grey.
constexpr std::uint32_t mcu_blocks_of(const JpegEncoderLimits& limits) {
  return with_band(limits, [](auto band) { return decltype(band)::blocks; });
}

/// Blocks of 8 x 8 samples in a tile.
constexpr std::uint64_t blocks_of(const JpegEncoderLimits& limits) {
  return std::uint64_t{grid_of(limits).count} * mcu_blocks_of(limits);
}

/// Scratch memory that is enough whatever the pixels are.
constexpr std::uint64_t most_scratch_bytes(const JpegEncoderLimits& limits) {
  // Each band begins a unit of its own, with up to 31 bits of the one before.
  return limits.tiles * ((blocks_of(limits) * most_block_bits + 7) / 8 +
                         std::uint64_t{grid_of(limits).bands} * (4 + BandRecord::unit_bytes));
}

/// The most bytes that a tile can have: a scan of the most bits, with each of its bytes stuffed.
constexpr std::uint64_t most_tile_bytes(const JpegEncoderLimits& limits) {
  return EncodeTables::most_header_bytes + 2 * ((blocks_of(limits) * most_block_bits + 7) / 8) + end_bytes;
}

/// Whether all of a batch's tiles are in its output. If not, none of them is to be used.
/// \param bytes  the last of its offsets. \param capacity  of its output.
constexpr bool fits(const JpegEncoderLimits& limits, std::uint64_t bytes, std::uint64_t capacity,
                    std::uint32_t scratch_units) noexcept {
  return bytes <= capacity && scratch_units <= limits.scratch_bytes / BandRecord::unit_bytes;
}

/// \throws std::invalid_argument unless limits are sound; std::length_error when 32 bits can't count the batch's bands
///   or units of scratch memory.
void require_sound(const JpegEncoderLimits& limits);

/// What the kernels are told of a batch, without the encoder's own memory and the output, which the caller adds. Reads
/// no pixel of the plane.
/// \throws std::invalid_argument for another format, a tile that isn't in the plane, a plane that begins left of or
///   above its image, or an image with a side above 2^31; std::length_error for too many tiles.
EncodeTask make_encode_task(const JpegEncoderLimits& limits, const ConstPixelView<MemorySpace::device>& plane,
                            std::span<const JpegTilePosition> tiles);

/// Parts of an encoder's device memory, as offsets that are multiples of 256.
struct JpegEncoderMemory {
  std::size_t tables = 0;
  std::size_t header = 0;
  std::size_t counters = 0;
  std::size_t tiles = 0;
  std::size_t lengths = 0;
  std::size_t bands = 0;
  std::size_t scratch = 0;
  std::size_t size = 0;

  explicit constexpr JpegEncoderMemory(const JpegEncoderLimits& limits) {
    const auto take = [this](std::uint64_t bytes) {
      const std::size_t at = size;
      size += (bytes + 255) / 256 * 256;
      return at;
    };
    tables = take(2 * sizeof(CodingTables));
    header = take(EncodeTables::most_header_bytes);
    counters = take(sizeof(EncodeCounters));
    tiles = take(std::uint64_t{limits.tiles} * sizeof(JpegTilePosition));
    lengths = take(std::uint64_t{limits.tiles} * sizeof(std::uint32_t));
    bands = take(std::uint64_t{limits.tiles} * grid_of(limits).bands * sizeof(BandRecord));
    scratch = take(limits.scratch_bytes);
  }
};

}  // namespace slidestream::cuda
