#pragma once

#include "cuda/jpeg2000/colour.cuh"

/// \file
/// Large tiles: as in transform.cuh, but resolutions are in memory, rows are longer, and a thread has several columns.

namespace slidestream::cuda {
namespace {

struct LargeShape {
  static constexpr unsigned threads = 256;
  static constexpr unsigned warps = threads / 32;
  static constexpr unsigned blocks_per_multiprocessor = 2;
  static constexpr std::uint32_t columns = most_jpeg2000_side / threads;  // of a thread
  static constexpr std::uint32_t strip_pairs = warps;                     // of rows
};

struct LargeMemory {
  float strip[2 * LargeShape::strip_pairs * most_jpeg2000_side];
  PlacedBlock blocks[most_component_blocks];
  Jpeg2000Band bands[most_jpeg2000_bands];
  std::uint32_t used;
};

/// A resolution above the lowest, from the one below, `from`. `put(x, row, value)` gets all of it.
template <class Wavelet, std::uint32_t count, class Put>
__device__ __forceinline__ void transform_large_level(const LevelShape& level, const std::uint32_t* planes,
                                                      LargeMemory& memory, const typename Wavelet::Value* from,
                                                      std::uint32_t from_pitch, const Put& put) {
  using Value = typename Wavelet::Value;
  constexpr std::uint32_t pitch = most_jpeg2000_side;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  auto* const strip = reinterpret_cast<Value*>(memory.strip);
  typename Wavelet::Column columns[LargeShape::columns];
  for (std::uint32_t first = 0; first < level.low_height; first += LargeShape::strip_pairs) {
    if (first + warp < level.low_height) {
      transform_row_pair<Wavelet, count>(memory, planes, level, first + warp, lane * count, 32, from, from_pitch,
                                         strip + warp * 2 * pitch, pitch);
    }
    __syncthreads();
#pragma unroll
    for (std::uint32_t j = 0; j < LargeShape::columns; ++j) {
      const std::uint32_t x = threadIdx.x + j * LargeShape::threads;
      if (x >= level.width) break;
      for (std::uint32_t k = 0; k < LargeShape::strip_pairs && first + k < level.low_height; ++k) {
        columns[j].push(first + k, level.low_height, level.high_height(), strip[2 * k * pitch + x],
                        strip[(2 * k + 1) * pitch + x], [&](std::uint32_t row, Value value) { put(x, row, value); });
      }
    }
    __syncthreads();
  }
}

template <class Wavelet, class Put>
__device__ __forceinline__ void transform_large_level(const LevelShape& level, const std::uint32_t* planes,
                                                      LargeMemory& memory, const typename Wavelet::Value* from,
                                                      std::uint32_t from_pitch, const Put& put) {
  if (level.low_width <= 128) {
    transform_large_level<Wavelet, 4>(level, planes, memory, from, from_pitch, put);
  } else {
    transform_large_level<Wavelet, 16>(level, planes, memory, from, from_pitch, put);
  }
}

/// A component of a tile: all resolutions but the last in `part(resolution)`, the last by `put`.
template <class Wavelet, class Part, class Put>
__device__ __forceinline__ void transform_large_component(const DecodedComponent& component,
                                                          const std::uint32_t* planes, LargeMemory& memory,
                                                          const Part& part, const Put& put) {
  using Value = typename Wavelet::Value;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t width = reduced(component.width, component.levels),
                      height = reduced(component.height, component.levels);
  for (std::uint32_t y = warp; y < height; y += LargeShape::warps) {
    for (std::uint32_t x = lane * 4; x < width; x += 128) {
      Value values[4];
      expand<Wavelet>(fetch_four(memory, planes, 0, width, y, x), values);
      for (std::uint32_t k = 0; k < 4; ++k) {
        if (x + k < width) part(0)[y * pitch_of(component, 0) + x + k] = values[k];
      }
    }
  }
  __syncthreads();
  for (std::uint32_t r = 1; r <= component.levels; ++r) {
    const LevelShape level(component, r);
    const std::uint32_t pitch = pitch_of(component, r);
    Value* const to = part(r);
    transform_large_level<Wavelet>(level, planes, memory, part(r - 1), pitch_of(component, r - 1),
                                   [&](std::uint32_t x, std::uint32_t row, Value value) {
                                     if (r < component.levels) {
                                       to[row * pitch + x] = value;
                                     } else {
                                       put(x, row, value);
                                     }
                                   });
  }
}

/// Blocks take tiles by turns.
template <class Wavelet>
__global__ void __launch_bounds__(LargeShape::threads, LargeShape::blocks_per_multiprocessor)
    transform_large(const Jpeg2000DeviceBatch batch) {
  using Value = typename Wavelet::Value;
  auto& memory = *reinterpret_cast<LargeMemory*>(block_memory());
  const std::uint32_t side = batch.large_side;
  // Two components, then resolutions by turns in two places.
  auto* const values = reinterpret_cast<Value*>(batch.colour) + blockIdx.x * large_floats(side);
  Value* const resolutions = values + 2 * side * side;
  for (std::uint32_t number = blockIdx.x; number < batch.tile_count; number += gridDim.x) {
    const Jpeg2000DeviceTile tile = batch.tiles[number];
    const Jpeg2000Coding& coding = batch.codings[tile.coding];
    if (batch.verdicts[number] != 0 || (coding.reversible != 0) != Wavelet::reversible) continue;
    if (way_of(tile, coding) != Jpeg2000Way::large) continue;
    const PixelWriter<Wavelet> writer(batch, tile, coding);
    for (std::uint32_t c = coding.components; c-- > 0;) {
      const DecodedComponent component = coding.decoded[c];
      place_blocks(batch, coding, component, tile.first_block, memory);
      const auto part = [&](std::uint32_t resolution) {
        return (component.levels - resolution) % 2 != 0 ? resolutions : resolutions + side * side / 4;
      };
      transform_large_component<Wavelet>(
          component, batch.planes, memory, part, [&](std::uint32_t x, std::uint32_t row, Value value) {
            if (c > 0) {
              values[(c - 1) * side * side + row * side + x] = value;
              return;
            }
            if (!writer.three()) return writer.write(x, row, value, Value{}, Value{});
            const auto beside = [&](std::uint32_t other) {
              const DecodedComponent& its = coding.decoded[other];
              return ValuesBeside<Value>{values + (other - 1) * side * side, side, its.dx, its.dy}.at(x, row);
            };
            writer.write(x, row, value, beside(1), beside(2));
          });
    }
  }
}

}  // namespace
}  // namespace slidestream::cuda
