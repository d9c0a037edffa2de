#pragma once

#include <cstdint>

#include "cuda/encode/encode_tables.hpp"
#include "cuda/encode/words.hpp"

/// \file
/// What the kernels are told, and what they tell each other.

namespace slidestream::cuda {

/// A tile of a plane: its first pixel, in pixels of the image.
struct JpegTilePosition {
  std::uint32_t x;
  std::uint32_t y;
};

/// Blocks of a grey tile, or MCUs (16 x 16, 16 x 8 or 8 x 8 pixels) of one in colour, row by row, and the bands that
/// they are cut into.
struct TileGrid {
  std::uint32_t across;
  std::uint32_t inverse;  ///< 2^32 / across, rounded up: exact for all numbers below 2^32 / across. 0: across is 1
  std::uint32_t count;
  std::uint32_t bands;

  SLIDESTREAM_HOST_DEVICE std::uint32_t row_of(std::uint32_t number) const {
    return across == 1 ? number : high_product(number, inverse);
  }
};

/// `width` x `height` pixels a block or MCU, `per_band` of them a band. At least as many rows as columns.
constexpr TileGrid make_tile_grid(std::uint32_t side, std::uint32_t width, std::uint32_t height,
                                  std::uint32_t per_band) {
  const std::uint32_t across = side / width;
  const std::uint32_t count = across * (side / height);
  const std::uint32_t inverse = across == 1 ? 0 : (~0U / across) + 1;
  return {across, inverse, count, (count + per_band - 1) / per_band};
}

/// Where a band's bits lie until they are stuffed.
struct BandRecord {
  static constexpr std::uint32_t unit_bytes = 16;
  static constexpr std::uint32_t nowhere = ~0U;
  std::uint32_t unit;    ///< of the scratch memory; nowhere: it was full
  std::uint32_t bytes;   ///< without stuffed ones
  std::uint32_t before;  ///< bytes of the tile's scan before the band, with stuffed ones
  std::uint32_t unused;
};

/// What blocks count together; zeros at first.
struct EncodeCounters {
  std::uint32_t next_tile;
  std::uint32_t scratch_units;
};

struct EncodeTask {
  const std::uint8_t* plane;  ///< first pixel
  std::int64_t pitch;
  std::uint32_t plane_x;  ///< of the first pixel in the image
  std::uint32_t plane_y;
  std::uint32_t image_columns;
  std::uint32_t image_rows;
  std::uint32_t channels;
  std::uint32_t side;
  std::uint32_t mcu_blocks;  ///< of colour: 6, 4 or 3, of which two are Cb and Cr
  TileGrid grid;
  const JpegTilePosition* tiles;
  std::uint32_t tile_count;
  std::uint32_t header_bytes;
  const std::uint8_t* header;
  const CodingTables* tables;  ///< one, for colour two
  std::uint32_t* scratch;
  std::uint32_t scratch_capacity;  ///< units
  EncodeCounters* counters;
  BandRecord* bands;             ///< grid.bands a tile
  std::uint32_t* lengths;        ///< of tiles, with all that is in them
  std::uint64_t* offsets;        ///< tile_count + 1
  std::uint32_t* scratch_units;  ///< what the batch wanted of scratch memory
  std::uint8_t* output;
  std::uint64_t output_capacity;
};

/// A tile's pixels: those of the image that are in it, the others are the last column's and row's.
struct TileSource {
  const std::uint8_t* first;
  std::int64_t pitch;
  std::uint32_t last_column;
  std::uint32_t last_row;
  std::uint32_t plain;  ///< whole, and eight pixels lie at a multiple of 8 bytes wherever their column is one of 8
  std::uint32_t number;
};

SLIDESTREAM_HOST_DEVICE TileSource source_of(const EncodeTask& task, std::uint32_t number) {
  const JpegTilePosition at = task.tiles[number];
  TileSource source{};
  source.first = task.plane + static_cast<std::int64_t>(at.y - task.plane_y) * task.pitch +
                 std::uint64_t{at.x - task.plane_x} * task.channels;
  source.pitch = task.pitch;
  const std::uint32_t columns = task.image_columns - at.x;
  const std::uint32_t rows = task.image_rows - at.y;
  source.last_column = (columns < task.side ? columns : task.side) - 1;
  source.last_row = (rows < task.side ? rows : task.side) - 1;
  const bool whole = columns >= task.side && rows >= task.side;
  const bool aligned =
      ((reinterpret_cast<std::uintptr_t>(source.first) | static_cast<std::uintptr_t>(task.pitch)) & 7U) == 0;
  source.plain = whole && aligned ? 1 : 0;
  source.number = number;
  return source;
}

}  // namespace slidestream::cuda
