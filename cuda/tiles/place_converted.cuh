#pragma once

#include "codec/ycbcr.hpp"
#include "cuda/colour/device_convert.cuh"
#include "cuda/tiles/place_converted.hpp"

/// \file
/// The kernel of `place_converted_tiles`. Included where kernels are compiled, and by what runs it on the host.

namespace slidestream::cuda {
namespace {

/// A warp takes a row at a time, four pixels a lane. Blocks come by tiles in turns, so that a block's tables serve many
/// pixels, and some share a tile.
struct ConvertedShape {
  static constexpr unsigned threads = 1024;
  static constexpr unsigned blocks_per_tile = 4;
  static constexpr unsigned most_rows = 128;  ///< of blocks
};

/// What a kernel is told.
struct ConvertedTask {
  ConvertedPlanes planes;
  const std::uint8_t* bytes;
  const PlacedTile* tiles;
  std::uint32_t count;
  SampleLayout layout;
  DeviceColours colours;
};

/// A pixel of samples. \param three  there are as many as a colour has
__device__ __forceinline__ Rgb pixel_of(const std::uint8_t* at, Colour colour, bool three) {
  if (three && colour == Colour::rgb) return {at[0], at[1], at[2]};
  if (three && colour == Colour::ycbcr) return ycbcr_to_rgb(at[0], at[1], at[2]);
  const auto value = static_cast<std::uint8_t>(colour == Colour::grey_inverted ? 255 - at[0] : at[0]);
  return {value, value, value};
}

/// Rows of a tile, as one warp has them. Null where they aren't wanted, or white.
struct ConvertedRow {
  const std::uint8_t* from;
  std::uint8_t* rgb;
  std::uint8_t* grey;
  std::uint32_t width;

  __device__ __forceinline__ bool in_words() const {
    return (reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(rgb) |
            reinterpret_cast<std::uintptr_t>(grey)) %
               4 ==
           0;
  }
};

/// A pixel at any address.
__device__ __forceinline__ void write_pixel(const ConvertedRow& row, std::uint32_t x, const Rgb& to) {
  if (row.rgb != nullptr) {
    row.rgb[3 * x] = to.red;
    row.rgb[3 * x + 1] = to.green;
    row.rgb[3 * x + 2] = to.blue;
  }
  if (row.grey != nullptr) row.grey[x] = luminance(to.red, to.green, to.blue);
}

template <ColoursBy by>
__device__ __forceinline__ void convert_row(const ConvertedRow& row, const SampleLayout& layout,
                                            const PixelConverter<by>& converter) {
  const unsigned lane = threadIdx.x % 32;
  const bool three = layout.samples >= 3;
  const bool packed_rgb = layout.colour == Colour::rgb && layout.samples == 3 && row.in_words();
  const std::uint32_t whole = row.from != nullptr && packed_rgb ? row.width / 4 * 4 : 0;
  for (std::uint32_t x = 4 * lane; x < whole; x += 128) {
    const auto* const from = reinterpret_cast<const std::uint32_t*>(row.from + 3 * x);
    std::uint32_t words[3] = {from[0], from[1], from[2]};
    const std::uint32_t grey = converter.convert_four(words);
    if (row.rgb != nullptr) {
      auto* const to = reinterpret_cast<std::uint32_t*>(row.rgb + 3 * x);
      to[0] = words[0];
      to[1] = words[1];
      to[2] = words[2];
    }
    if (row.grey != nullptr) *reinterpret_cast<std::uint32_t*>(row.grey + x) = grey;
  }
  for (std::uint32_t x = whole + lane; x < row.width; x += 32) {
    Rgb to = {255, 255, 255};
    if (row.from != nullptr) {
      to = converter.of(pixel_of(row.from + static_cast<std::size_t>(x) * layout.samples, layout.colour, three));
    }
    write_pixel(row, x, to);
  }
}

template <ColoursBy by>
__global__ void __launch_bounds__(ConvertedShape::threads) place_converted(const __grid_constant__ ConvertedTask task) {
  unsigned tables = 0;
  if constexpr (by == ColoursBy::matrix) tables = load_tables<ConvertedShape::threads>(task.colours.program->tables);
  const PixelConverter<by> converter(task.colours, tables);
  constexpr unsigned rows_at_a_time = ConvertedShape::threads / 32;
  for (std::uint32_t number = blockIdx.y; number < task.count; number += gridDim.y) {
    const PlacedTile tile = task.tiles[number];
    for (std::uint32_t y = blockIdx.x * rows_at_a_time + threadIdx.x / 32; y < tile.height;
         y += gridDim.x * rows_at_a_time) {
      const auto row = static_cast<std::ptrdiff_t>(y);
      const ConvertedPlanes& to = task.planes;
      convert_row<by>(
          {tile.source == PlacedTile::white
               ? nullptr
               : task.bytes + tile.source + static_cast<std::size_t>(y) * task.layout.row_bytes,
           to.rgb == nullptr ? nullptr : to.rgb + tile.rgb_destination + row * to.rgb_pitch,
           to.luminance == nullptr ? nullptr : to.luminance + tile.destination + row * to.luminance_pitch, tile.width},
          task.layout, converter);
    }
  }
}

}  // namespace
}  // namespace slidestream::cuda
