#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "cuda/jpeg/jpeg_batch.hpp"

/// \file
/// How warps share decoded tiles: a stretch at a time, 256 columns and 32 rows.

namespace slidestream::cuda {
namespace {

/// Warps that share a tile.
constexpr std::uint32_t stretch_warps = 8;

/// A stretch of a tile, and where it goes.
struct Stretch {
  std::uint8_t* to;  // the frame's pixel (0, 0)
  std::uint32_t pitch;
  std::uint32_t first_column;
  std::uint32_t columns;  // beyond the last of the frame that is wanted
  std::uint32_t first_row;
  std::uint32_t end_row;
};

/// Blocks for all tiles: x is the tile's number.
inline dim3 stretch_grid(std::uint32_t tiles, std::uint32_t most_stretches) {
  return {tiles, std::min((most_stretches + stretch_warps - 1) / stretch_warps, 65535U)};
}

/// Calls `visit` with this warp's stretches of a tile.
template <class Visit>
__device__ __forceinline__ void for_each_stretch(const JpegDeviceTile& tile, std::uint8_t* to, std::uint32_t pitch,
                                                 const Visit& visit) {
  Stretch stretch{to, pitch, 0, std::uint32_t{tile.first_column} + tile.columns, 0, 0};
  const std::uint32_t across = stretches_across(tile);
  const std::uint32_t count = stretch_count(tile);
  const std::uint32_t end_row = std::uint32_t{tile.first_row} + tile.rows;
  const std::uint32_t warp = threadIdx.x / 32 % stretch_warps;
  for (std::uint32_t i = blockIdx.y * stretch_warps + warp; i < count; i += gridDim.y * stretch_warps) {
    const std::uint32_t down = i / across;
    const std::uint32_t band = (tile.first_row / stretch_rows + down) * stretch_rows;
    stretch.first_column = (tile.first_column / stretch_columns + i - down * across) * stretch_columns;
    stretch.first_row = max(band, std::uint32_t{tile.first_row});
    stretch.end_row = min(band + stretch_rows, end_row);
    visit(stretch);
  }
}

}  // namespace
}  // namespace slidestream::cuda
