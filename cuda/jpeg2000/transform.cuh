#pragma once

#include "cuda/jpeg2000/arena.cuh"
#include "cuda/jpeg2000/colour.hpp"
#include "cuda/jpeg2000/device_batch.hpp"
#include "cuda/jpeg2000/wavelet.hpp"

/// \file
/// From bit planes to pixels: a thread block a tile. Coefficients never reach device memory: all levels but the last
/// stay in shared memory, and the last is made in strips, rows by warps and columns by threads, each of which keeps
/// what it must of the rows before.

namespace slidestream::cuda {
namespace {

struct TransformShape {
  static constexpr unsigned threads = small_jpeg2000_side;  // one a column
  static constexpr unsigned warps = threads / 32;
  static constexpr unsigned blocks_per_multiprocessor = 2;
  static constexpr std::uint32_t half = small_jpeg2000_side / 2;
  static constexpr std::uint32_t strip_pairs = warps;  // of rows
  // Parts of shared memory: one level, and another, which is the strip in the end.
  static constexpr std::uint32_t large = half * half;
  static constexpr std::uint32_t late_rows = 3;  ///< that the last pair has besides
  static constexpr std::uint32_t small = (2 * strip_pairs + late_rows) * small_jpeg2000_side;
};

/// A code-block's planes.
struct PlacedBlock {
  std::uint32_t planes;  ///< word
  std::uint32_t
      contents;         ///< coded planes | groups of columns << 8 | whether the last pass is a significance pass << 16
  std::uint32_t words;  ///< of a plane
  BlockScale scale;
};

struct TransformMemory {
  float large[TransformShape::large];
  float small[TransformShape::small];
  PlacedBlock blocks[most_small_blocks];
  Jpeg2000Band bands[most_jpeg2000_bands];
  std::uint32_t used;  ///< whether any of the blocks has bits
};

/// Four neighbouring coefficients of a row, as they come from memory: planes from the last up, so that many loads are
/// under way at once.
struct RawFour {
  static constexpr std::uint32_t first_planes = 8;

  std::uint32_t signs;
  std::uint32_t words[first_planes];
  std::uint32_t planes;
  const std::uint32_t* last;  ///< word of the last plane
  std::uint32_t plane_words;
  std::uint32_t shift;
  BlockScale scale;
};

template <class Memory>
__device__ __forceinline__ RawFour fetch_four(const Memory& memory, const std::uint32_t* __restrict__ planes,
                                              std::uint32_t band_number, std::uint32_t width, std::uint32_t row,
                                              std::uint32_t x) {
  RawFour raw;
  raw.planes = raw.signs = raw.plane_words = raw.shift = 0;
  raw.last = planes;
  raw.scale = {0.0F, 0, 0};
  if (x < width) {
    const Jpeg2000Band band = memory.bands[band_number];
    const PlacedBlock block = memory.blocks[band.first_block + (row >> band.block_height_log) * band.blocks_across +
                                            (x >> band.block_width_log)];
    raw.planes = block.contents & 0xFFU;
    raw.scale = block.scale;
    const std::uint32_t column = x & ((1U << band.block_width_log) - 1),
                        line = row & ((1U << band.block_height_log) - 1);
    raw.plane_words = block.words;
    raw.last = planes + (block.planes + line / 4 * (block.contents >> 8) + column / 8);
    raw.shift = column % 8 * 4 + line % 4;
  }
  if (raw.planes > 0) raw.signs = *raw.last;
  raw.last += raw.plane_words * (raw.planes + 1);
#pragma unroll
  for (std::uint32_t i = 0; i < RawFour::first_planes; ++i) {
    raw.words[i] = i < raw.planes ? *(raw.last - i * raw.plane_words) : 0U;
  }
  return raw;
}

/// The coefficients: magnitude bits are collected four planes to a nibble.
template <class Wavelet>
__device__ __forceinline__ void expand(const RawFour& raw, typename Wavelet::Value* values) {
  constexpr std::uint32_t ones = 0x1111;
  std::uint32_t nibbles[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 3; i >= 0; --i) nibbles[0] = nibbles[0] * 2 | (raw.words[i] >> raw.shift & ones);
  if (raw.planes > 4) {
#pragma unroll
    for (int i = 7; i >= 4; --i) nibbles[1] = nibbles[1] * 2 | (raw.words[i] >> raw.shift & ones);
    for (std::uint32_t i = raw.planes; i-- > RawFour::first_planes;) {
      const std::uint32_t bits = *(raw.last - i * raw.plane_words) >> raw.shift & ones;
      nibbles[3] = nibbles[3] * 2 | (nibbles[2] >> 3 & ones);
      nibbles[2] = (nibbles[2] * 2 & 0xEEEEU) | bits;
    }
  }
  const std::uint32_t signs = raw.signs >> raw.shift;
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    std::uint32_t magnitude = (nibbles[0] >> 4 * i & 15U) | (nibbles[1] >> 4 * i & 15U) << 4;
    if (raw.planes > RawFour::first_planes) {
      magnitude |= (nibbles[2] >> 4 * i & 15U) << 8 | (nibbles[3] >> 4 * i & 15U) << 12;
    }
    values[i] = Wavelet::value(magnitude, signs >> 4 * i & 1U, raw.scale);
  }
}

/// Where a lane is in a row: some pairs from `x` on, of `lows` and `highs`; `group` lanes share the row.
struct RowPlace {
  std::uint32_t x;
  std::uint32_t lows;
  std::uint32_t highs;
  int group;
};

/// Low samples get something of the high ones on both sides.
template <class Value, std::uint32_t count, class Lift>
__device__ __forceinline__ void lift_lows(Value (&low)[count], const Value (&high)[count], const RowPlace& at,
                                          const Lift& lift) {
  Value before = __shfl_up_sync(all_lanes, high[count - 1], 1, at.group);
  if (at.x == 0) before = high[0];
#pragma unroll
  for (std::uint32_t i = 0; i < count; ++i) {
    const Value left = i > 0 ? high[i - 1] : before;
    low[i] = lift(low[i], left, at.x + i >= at.highs ? left : high[i]);
  }
}

/// And the other way round.
template <class Value, std::uint32_t count, class Lift>
__device__ __forceinline__ void lift_highs(const Value (&low)[count], Value (&high)[count], const RowPlace& at,
                                           const Lift& lift) {
  const Value behind = __shfl_down_sync(all_lanes, low[0], 1, at.group);
#pragma unroll
  for (std::uint32_t i = 0; i < count; ++i) {
    const Value right = i + 1 < count ? low[i + 1] : behind;
    high[i] = lift(high[i], low[i], at.x + i + 1 >= at.lows ? low[i] : right);
  }
}

/// One level of a row, by all lanes of a warp.
template <class Wavelet, std::uint32_t count>
__device__ __forceinline__ void transform_row(typename Wavelet::Value (&low)[count],
                                              typename Wavelet::Value (&high)[count], const RowPlace& at) {
  if (at.lows + at.highs == 1) return;
  if constexpr (Wavelet::reversible) {
    lift_lows(low, high, at, [](int x, int left, int right) { return Wavelet53::even(x, left, right); });
    lift_highs(low, high, at, [](int x, int left, int right) { return Wavelet53::odd(x, left, right); });
  } else {
#pragma unroll
    for (std::uint32_t i = 0; i < count; ++i) {
      low[i] = product(low[i], Wavelet::low_scale);
      high[i] = product(high[i], Wavelet::high_scale);
    }
    const auto by = [](float factor) {
      return [factor](float x, float left, float right) { return Wavelet97::lifted(x, left, right, factor); };
    };
    lift_lows(low, high, at, by(Wavelet::delta));
    lift_highs(low, high, at, by(Wavelet::gamma));
    lift_lows(low, high, at, by(Wavelet::beta));
    lift_highs(low, high, at, by(Wavelet::alpha));
  }
}

/// What a resolution is made of.
struct LevelShape {
  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t low_width;
  std::uint32_t low_height;
  std::uint32_t first_band;

  __device__ __forceinline__ LevelShape(const DecodedComponent& component, std::uint32_t resolution)
      : width(reduced(component.width, component.levels - resolution)),
        height(reduced(component.height, component.levels - resolution)),
        low_width((width + 1) / 2),
        low_height((height + 1) / 2),
        first_band(3 * resolution - 2) {}
  __device__ __forceinline__ std::uint32_t high_width() const { return width / 2; }
  __device__ __forceinline__ std::uint32_t high_height() const { return height / 2; }
};

/// Pitch of a level in shared memory, in samples: pairs are stored at once.
__device__ __forceinline__ std::uint32_t pitch_of(const DecodedComponent& component, std::uint32_t resolution) {
  return (reduced(component.width, component.levels - resolution) + 1U) & ~1U;
}

template <class Value>
struct alignas(8) Pair {
  Value low;
  Value high;
};

template <class Wavelet, std::uint32_t count>
__device__ __forceinline__ void store_pairs(typename Wavelet::Value* to, const typename Wavelet::Value (&low)[count],
                                            const typename Wavelet::Value (&high)[count], std::uint32_t x,
                                            std::uint32_t lows) {
#pragma unroll
  for (std::uint32_t k = 0; k < count; ++k) {
    if (x + k < lows) *reinterpret_cast<Pair<typename Wavelet::Value>*>(to + 2 * (x + k)) = {low[k], high[k]};
  }
}

/// Pair `i` of a level's rows: of the low rows `from`, whose pitch is `from_pitch`, and the bands, to `to`. A lane
/// takes `count` pairs of samples.
template <class Wavelet, std::uint32_t count = 4, class Memory>
__device__ __forceinline__ void transform_row_pair(const Memory& memory, const std::uint32_t* planes,
                                                   const LevelShape& level, std::uint32_t i, std::uint32_t x, int group,
                                                   const typename Wavelet::Value* from, std::uint32_t from_pitch,
                                                   typename Wavelet::Value* to, std::uint32_t to_pitch) {
  using Value = typename Wavelet::Value;
  const std::uint32_t lows = level.low_width, highs = level.high_width();
  const bool has_high_row = i < level.high_height();
  if (i >= level.low_height) x = 1U << 20;  // nothing, but its lanes take part in exchanges
  const RowPlace place{x, lows, highs, group};
  Value low[count];
  Value high[count];
  if constexpr (count == 4) {
    // All loads are under way at once.
    const RawFour high_low = fetch_four(memory, planes, level.first_band, highs, i, x);
    const RawFour low_high = fetch_four(memory, planes, level.first_band + 1, has_high_row ? lows : 0, i, x);
    const RawFour high_high = fetch_four(memory, planes, level.first_band + 2, has_high_row ? highs : 0, i, x);
#pragma unroll
    for (std::uint32_t k = 0; k < count; ++k) low[k] = x + k < lows ? from[i * from_pitch + x + k] : Value{};
    expand<Wavelet>(high_low, high);
    transform_row<Wavelet>(low, high, place);
    store_pairs<Wavelet>(to, low, high, x, lows);
    expand<Wavelet>(low_high, low);
    expand<Wavelet>(high_high, high);
  } else {
#pragma unroll
    for (std::uint32_t k = 0; k < count; ++k) low[k] = x + k < lows ? from[i * from_pitch + x + k] : Value{};
#pragma unroll
    for (std::uint32_t k = 0; k < count; k += 4) {
      expand<Wavelet>(fetch_four(memory, planes, level.first_band, highs, i, x + k), high + k);
    }
    transform_row<Wavelet>(low, high, place);
    store_pairs<Wavelet>(to, low, high, x, lows);
#pragma unroll
    for (std::uint32_t k = 0; k < count; k += 4) {
      expand<Wavelet>(fetch_four(memory, planes, level.first_band + 1, has_high_row ? lows : 0, i, x + k), low + k);
      expand<Wavelet>(fetch_four(memory, planes, level.first_band + 2, has_high_row ? highs : 0, i, x + k), high + k);
    }
  }
  transform_row<Wavelet>(low, high, place);
  if (has_high_row) store_pairs<Wavelet>(to + to_pitch, low, high, x, lows);
}

/// Finds the blocks and bands of a tile's component; all threads.
template <class Memory>
__device__ __forceinline__ void place_blocks(const Jpeg2000DeviceBatch& batch, const Jpeg2000Coding& coding,
                                             const DecodedComponent& component, std::uint32_t first_block,
                                             Memory& memory) {
  if (threadIdx.x == 0) memory.used = 0;
  if (threadIdx.x < most_jpeg2000_bands) {
    Jpeg2000Band band = coding.bands[component.first_band + threadIdx.x];
    band.first_block = static_cast<std::uint16_t>(band.first_block - component.first_block);
    memory.bands[threadIdx.x] = band;
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < component.blocks; i += TransformShape::threads) {
    std::uint32_t number = 0;
    while (number < 3U * component.levels && memory.bands[number + 1].first_block <= i) ++number;
    const Jpeg2000Band band = memory.bands[number];
    const Jpeg2000Block block = batch.blocks[first_block + component.first_block + i];
    if (block.coded_planes > 0) atomicMax(&memory.used, 1U);
    const std::uint32_t at = i - band.first_block;
    const std::uint32_t width =
        smaller(1U << band.block_width_log, band.width - (at % band.blocks_across << band.block_width_log));
    const std::uint32_t height =
        smaller(1U << band.block_height_log, band.height - (at / band.blocks_across << band.block_height_log));
    memory.blocks[i] = {block.planes, block.coded_planes | (width + 7) / 8 << 8, plane_words(width, height),
                        block_scale(block.passes, block.bit_planes, block.coded_planes, band.half_step)};
  }
  __syncthreads();
}

/// All resolutions but the last, one from the other, in turns in both parts of shared memory. The last is in `large`.
template <class Wavelet>
__device__ __forceinline__ void transform_small_levels(const DecodedComponent& component, const std::uint32_t* planes,
                                                       TransformMemory& memory) {
  using Value = typename Wavelet::Value;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  auto* const large = reinterpret_cast<Value*>(memory.large);
  auto* const small = reinterpret_cast<Value*>(memory.small);
  const auto part = [&](std::uint32_t resolution) {
    return (component.levels - 1U - resolution) % 2 != 0 ? small : large;
  };
  const std::uint32_t width = reduced(component.width, component.levels),
                      height = reduced(component.height, component.levels);
  for (std::uint32_t y = warp; y < height; y += TransformShape::warps) {
    Value values[4];
    expand<Wavelet>(fetch_four(memory, planes, 0, width, y, lane * 4), values);
    for (std::uint32_t k = 0; k < 4; ++k) {
      if (lane * 4 + k < width) part(0)[y * pitch_of(component, 0) + lane * 4 + k] = values[k];
    }
  }
  __syncthreads();
  for (std::uint32_t r = 1; r < component.levels; ++r) {
    const LevelShape level(component, r);
    const std::uint32_t pitch = pitch_of(component, r);
    Value* const to = part(r);
    // Short rows share a warp.
    const std::uint32_t group = level.low_width > 64 ? 32 : level.low_width > 32 ? 16 : level.low_width > 16 ? 8 : 4;
    const std::uint32_t rows = 32 / group;
    for (std::uint32_t i = warp * rows; i < level.low_height; i += TransformShape::warps * rows) {
      const std::uint32_t row = i + lane / group;
      transform_row_pair<Wavelet>(memory, planes, level, row, lane % group * 4, static_cast<int>(group), part(r - 1),
                                  pitch_of(component, r - 1), to + 2 * row * pitch, pitch);
    }
    __syncthreads();
    if (threadIdx.x < level.width) {
      typename Wavelet::Column column;
      Value* const at = to + threadIdx.x;
      for (std::uint32_t i = 0; i < level.low_height; ++i) {
        const Value low = at[2 * i * pitch], high = i < level.high_height() ? at[(2 * i + 1) * pitch] : Value{};
        column.push(i, level.low_height, level.high_height(), low, high,
                    [&](std::uint32_t row, Value value) { at[row * pitch] = value; });
      }
    }
    __syncthreads();
  }
}

/// A column of the tile on its way to the plane, a row at a time.
template <class Wavelet>
struct PixelColumn {
  using Value = typename Wavelet::Value;
  static constexpr bool by_rows = false;

  std::uint8_t* at;  ///< row 0
  std::uint32_t pitch;
  std::uint32_t first_row;
  std::uint32_t rows;
  PixelsOf pixels_of;

  __device__ __forceinline__ void put(std::uint32_t row, Value value) const {
    if (row - first_row < rows)
      at[static_cast<std::size_t>(row) * pitch] = first_of(Wavelet::rounded(value), pixels_of);
  }
};

/// The last resolution, to `pixels`. A thread gives it the rows of its column in their order, by `put(row, value)`.
/// Where it is `by_rows` they stay in the strip instead: all threads' `begin(first_row)` comes before that, and their
/// `finish(first_row, end_row, strip)` gets the strip's rows, of which those are there that the tile has.
template <class Wavelet, class Pixels>
__device__ __forceinline__ void transform_last_level(const DecodedComponent& component, const std::uint32_t* planes,
                                                     TransformMemory& memory, Pixels& pixels) {
  using Value = typename Wavelet::Value;
  constexpr std::uint32_t pairs = TransformShape::strip_pairs, pitch = small_jpeg2000_side;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const LevelShape level(component, component.levels);
  const std::uint32_t lows = level.low_height, highs = level.high_height();
  auto* const strip = reinterpret_cast<Value*>(memory.small);
  const auto* const from = reinterpret_cast<const Value*>(memory.large);
  typename Wavelet::Column column;
  for (std::uint32_t first = 0; first < lows; first += pairs) {
    const std::uint32_t pair = first + warp;
    if (pair < lows) {
      transform_row_pair<Wavelet>(memory, planes, level, pair, lane * 4, 32, from,
                                  pitch_of(component, component.levels - 1U), strip + warp * 2 * pitch, pitch);
    }
    __syncthreads();
    const std::uint32_t first_row = 2 * first - Wavelet::rows_late;
    if constexpr (Pixels::by_rows) pixels.begin(first_row);
    if (threadIdx.x < level.width) {
      Value* const at = strip + threadIdx.x;
      const auto put = [&](std::uint32_t row, Value value) {
        if constexpr (Pixels::by_rows) {
          at[(row - first_row) * pitch] = value;
        } else {
          pixels.put(row, value);
        }
      };
      if (first > 0 && first + pairs < lows) {
#pragma unroll
        for (std::uint32_t k = 0; k < pairs; ++k) {
          Value odd, even;
          column.push_inner(at[2 * k * pitch], at[(2 * k + 1) * pitch], odd, even);
          put(first_row + 2 * k, odd);
          put(first_row + 2 * k + 1, even);
        }
      } else {
        for (std::uint32_t k = 0; k < pairs && first + k < lows; ++k) {
          column.push(first + k, lows, highs, at[2 * k * pitch], at[(2 * k + 1) * pitch], put);
        }
      }
    }
    if constexpr (Pixels::by_rows) {
      __syncthreads();
      pixels.finish(first_row, first + pairs < lows ? first_row + 2 * pairs : level.height, strip);
    }
    __syncthreads();
  }
}

template <class Wavelet>
__global__ void __launch_bounds__(TransformShape::threads, TransformShape::blocks_per_multiprocessor)
    transform_tiles(const Jpeg2000DeviceBatch batch) {
  const Jpeg2000DeviceTile tile = batch.tiles[blockIdx.x];
  const Jpeg2000Coding& coding = batch.codings[tile.coding];
  if (batch.verdicts[blockIdx.x] != 0 || (coding.reversible != 0) != Wavelet::reversible) return;
  if (way_of(tile, coding) != Jpeg2000Way::first_alone) return;
  auto& memory = *reinterpret_cast<TransformMemory*>(block_memory());
  const DecodedComponent component = coding.decoded[0];
  place_blocks(batch, coding, component, tile.first_block, memory);
  transform_small_levels<Wavelet>(component, batch.planes, memory);
  const bool wanted = threadIdx.x - tile.first_column < tile.columns;
  PixelColumn<Wavelet> pixels{batch.plane + tile.luminance_origin + threadIdx.x, tile.luminance_pitch, tile.first_row,
                              wanted ? tile.rows : 0U, tile.luminance_of};
  transform_last_level<Wavelet>(component, batch.planes, memory, pixels);
}

}  // namespace
}  // namespace slidestream::cuda
