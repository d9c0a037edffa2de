#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/jpeg/device_batch.hpp"
#include "cuda/jpeg/idct.hpp"
#include "cuda/jpeg/shared_arena.cuh"

/// \file
/// From the coefficients of an event, in shared memory, to pixels in the plane or to samples of components: eight lanes
/// an event.

namespace slidestream::cuda {
namespace {

// What a lane keeps in shared memory besides: the tile's place, for those that write its pixels.
constexpr std::uint32_t desk_bytes = 48;
// Eight columns of eight words, padded so that neither columns nor rows collide in a bank: 12 words apart, four groups.
constexpr std::uint32_t transpose_stride = 48;
constexpr std::uint32_t transpose_group = 416;
constexpr std::uint32_t transpose_bytes = 4 * transpose_group;

/// Of a lane's place for parts of sectors, what one row of events takes.
template <LaneMode mode>
constexpr std::uint32_t parked_bytes = mode == LaneMode::pairs ? 128 : 256;

/// The desk: a tile's origin in the plane (64 bits), pitch and flags; rows and columns that are wanted (first, count);
/// tile number and predictions.
struct Desk {
  uint4 place;
  uint4 rectangle;
  static constexpr std::uint32_t predictions = 32;  // offset of three words
  static constexpr std::uint32_t aligned = 1;       // flags
  static constexpr std::uint32_t inverted = 2;
};

/// What an event's writers must be told, in a word: x and y in units of 8 pixels; where pixels of the same rows wait to
/// make a sector, whether these shall wait too, and in which of two places.
struct EventWord {
  static constexpr std::uint32_t y_shift = 13;
  static constexpr std::uint32_t first_shift = 26;  // two bits: the first part of the sector that waits
  static constexpr std::uint32_t waits_bit = 1U << 28;
  static constexpr std::uint32_t park_bit = 1U << 29;
  static constexpr std::uint32_t slot_shift = 30;
};

/// The same where components are kept apart: the number of the first block in the batch, and the blocks' components.
struct ComponentWord {
  static constexpr std::uint32_t shift = 28;
  static constexpr std::uint32_t block_mask = (1U << shift) - 1;
};

__device__ __forceinline__ std::uint32_t pack_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                                    std::uint32_t d) {
  std::uint32_t high;
  std::uint32_t all;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(d), "r"(c), "r"(0));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(b), "r"(a), "r"(high));
  return all;
}

__device__ __forceinline__ std::uint32_t low_half(std::uint32_t word) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(word << 16) >> 16);
}
__device__ __forceinline__ std::uint32_t high_half(std::uint32_t word) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(word) >> 16);
}
__device__ __forceinline__ void unpack_column(const uint4& words, std::uint32_t (&v)[8]) {
  v[0] = low_half(words.x);
  v[1] = high_half(words.x);
  v[2] = low_half(words.y);
  v[3] = high_half(words.y);
  v[4] = low_half(words.z);
  v[5] = high_half(words.z);
  v[6] = low_half(words.w);
  v[7] = high_half(words.w);
}

/// Columns in, rows out, among eight lanes: `column` is where a lane's column goes, `row` where its row lies.
__device__ __forceinline__ void put_column(const SharedArena& arena, std::uint32_t column,
                                           const std::uint32_t (&v)[8]) {
#pragma unroll
  for (std::uint32_t i = 0; i < 8; ++i) arena.store(column + transpose_stride * i, v[i]);
}
__device__ __forceinline__ void get_row(const SharedArena& arena, std::uint32_t row, std::uint32_t (&v)[8]) {
  const uint4 a = arena.load_vector(row);
  const uint4 b = arena.load_vector(row + 16);
  v[0] = a.x;
  v[1] = a.y;
  v[2] = a.z;
  v[3] = a.w;
  v[4] = b.x;
  v[5] = b.y;
  v[6] = b.z;
  v[7] = b.w;
}

/// Pixels of one row of an event: 16 for pairs, else 8.
struct RowPixels {
  std::uint32_t words[4];
};

/// A row that can't be written in one go: partly outside the rectangle, at an odd address, or inverted.
__device__ __noinline__ void write_bytes(std::uint8_t* to, RowPixels pixels, std::uint32_t x, std::uint32_t width,
                                         std::uint32_t columns, bool inverted) {
  const std::uint32_t first = columns & 0xFFFFU;
  const std::uint32_t count = columns >> 16;
  for (std::uint32_t i = 0; i < width; ++i) {
    const std::uint32_t word = i < 4    ? pixels.words[0]
                               : i < 8  ? pixels.words[1]
                               : i < 12 ? pixels.words[2]
                                        : pixels.words[3];
    const std::uint8_t value = static_cast<std::uint8_t>(word >> (8 * (i % 4)));
    if (x + i - first < count) to[i] = inverted ? static_cast<std::uint8_t>(255 - value) : value;
  }
}

/// Transforms a lane's blocks with eight lanes, of which this is the one for column and row `c`. `own` says whether
/// there is something to do: all lanes of the warp come along. `word` is the event's. \returns bits of `pass1_range`
/// where coefficients are out of range.
template <LaneMode mode>
__device__ __forceinline__ std::uint32_t transform(const SharedArena& arena, std::uint32_t blocks, std::uint32_t desk,
                                                   std::uint32_t transpose, std::uint32_t lane, bool own,
                                                   [[maybe_unused]] std::uint32_t word, RowPixels& pixels) {
  const std::uint32_t c = lane % 8;
  const std::uint32_t column = transpose + (lane / 8) * transpose_group + 4 * c;
  const std::uint32_t row = transpose + (lane / 8) * transpose_group + transpose_stride * c;
  std::uint32_t range = 0;
  // Addresses of the predictions: each component has its own.
  std::uint32_t first = desk + Desk::predictions;
  std::uint32_t second = first;
  if constexpr (keeps_components(mode)) {
    first += 4 * (word >> ComponentWord::shift & 3U);
    second += 4 * (word >> (ComponentWord::shift + 2));
  }
  if constexpr (blocks_per_event(mode) == 2) {
    const std::uint32_t prediction = arena.load(first);
    std::uint32_t other_prediction = 0;
    if constexpr (keeps_components(mode)) other_prediction = arena.load(second);
    const uint4 left = arena.load_vector(blocks + 16 * c);
    const uint4 right = arena.load_vector(blocks + 128 + 16 * c);
    if (own) {
      arena.store_vector(blocks + 16 * c, make_uint4(0, 0, 0, 0));
      arena.store_vector(blocks + 128 + 16 * c, make_uint4(0, 0, 0, 0));
    }
    std::uint32_t v[8];
    std::uint32_t w[8];
    unpack_column(left, v);
    unpack_column(right, w);
    std::uint32_t others = left.y | left.z | left.w | right.y | right.z | right.w;
    others |= c == 0 ? (left.x | right.x) & 0xFFFF0000U : left.x | right.x;
    if (c == 0) {
      v[0] += prediction;
      if constexpr (keeps_components(mode)) {
        w[0] += first == second ? v[0] : other_prediction;
        if (own) arena.store(first, v[0]);
        if (own) arena.store(second, w[0]);
      } else {
        w[0] += v[0];
        if (own) arena.store(first, w[0]);
      }
    }
    if (__any_sync(all_lanes, others != 0)) {
      range = idct_columns(v) | idct_columns(w);
      put_column(arena, column, v);
      put_column(arena, column + transpose_bytes, w);
      __syncwarp();
      get_row(arena, row, v);
      get_row(arena, row + transpose_bytes, w);
      idct_rows(v);
      idct_rows(w);
      pixels.words[0] = pack_bytes(v[0], v[1], v[2], v[3]);
      pixels.words[1] = pack_bytes(v[4], v[5], v[6], v[7]);
      pixels.words[2] = pack_bytes(w[0], w[1], w[2], w[3]);
      pixels.words[3] = pack_bytes(w[4], w[5], w[6], w[7]);
    } else {
      const int a = static_cast<int>(__shfl_sync(all_lanes, v[0], static_cast<int>(lane & 24U)));
      const int b = static_cast<int>(__shfl_sync(all_lanes, w[0], static_cast<int>(lane & 24U)));
      const bool fits = a >= -dc_only_bound && a < dc_only_bound && b >= -dc_only_bound && b < dc_only_bound;
      range = fits ? 0 : pass1_range;
      const std::uint32_t sample_a = static_cast<std::uint32_t>(dc_only_sample(a));
      const std::uint32_t sample_b = static_cast<std::uint32_t>(dc_only_sample(b));
      pixels.words[0] = pixels.words[1] = pack_bytes(sample_a, sample_a, sample_a, sample_a);
      pixels.words[2] = pixels.words[3] = pack_bytes(sample_b, sample_b, sample_b, sample_b);
    }
  } else {
    std::uint32_t sum[8];
#pragma unroll
    for (std::uint32_t b = 0; b < blocks_per_event(mode); ++b) {
      const std::uint32_t prediction = arena.load(first + 4 * b);
      const uint4 words = arena.load_vector(blocks + 128 * b + 16 * c);
      if (own) arena.store_vector(blocks + 128 * b + 16 * c, make_uint4(0, 0, 0, 0));
      std::uint32_t v[8];
      unpack_column(words, v);
      if (c == 0) {
        v[0] += prediction;
        if (own) arena.store(first + 4 * b, v[0]);
      }
      range |= idct_columns(v);
      __syncwarp();
      put_column(arena, column, v);
      __syncwarp();
      get_row(arena, row, v);
      idct_rows(v);
      if constexpr (mode != LaneMode::rgb) {
#pragma unroll
        for (int i = 0; i < 8; ++i) sum[i] = v[i];
      } else {
        const std::uint32_t weight = b == 0 ? 19595U : b == 1 ? 38470U : 7471U;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const std::uint32_t sample = static_cast<std::uint32_t>(min(max(static_cast<int>(v[i]), 0), 255));
          sum[i] = sample * weight + (b == 0 ? 32768U : sum[i]);
        }
      }
    }
    if constexpr (mode == LaneMode::rgb) {
#pragma unroll
      for (int i = 0; i < 8; ++i) sum[i] >>= 16;
    }
    pixels.words[0] = pack_bytes(sum[0], sum[1], sum[2], sum[3]);
    pixels.words[1] = pack_bytes(sum[4], sum[5], sum[6], sum[7]);
    pixels.words[2] = pixels.words[3] = 0;
  }
  return range & pass1_range;
}

/// Writes row `c` of an event's blocks: see component_layout.hpp. Whole lines of memory, or halves.
template <LaneMode mode>
__device__ __forceinline__ void write_component_row(std::uint8_t* components, std::uint32_t word, std::uint32_t c,
                                                    const RowPixels& pixels) {
  std::uint8_t* const to = components + std::uint64_t{64} * (word & ComponentWord::block_mask);
  if constexpr (blocks_per_event(mode) == 2) {
    reinterpret_cast<uint4*>(to)[c] = make_uint4(pixels.words[0], pixels.words[1], pixels.words[2], pixels.words[3]);
  } else {
    reinterpret_cast<uint2*>(to)[c] = make_uint2(pixels.words[0], pixels.words[1]);
  }
}

/// Writes row `c` of an event, or lets it wait for the rest of its sector. `parked` is the lane's place for that.
template <LaneMode mode>
__device__ __forceinline__ void write_row(std::uint8_t* plane, const Desk& desk, std::uint32_t word, std::uint32_t c,
                                          std::uint8_t* parked, const RowPixels& pixels, const uint4& waiting) {
  constexpr std::uint32_t width = mode == LaneMode::pairs ? 16 : 8;
  const std::uint32_t x = 8 * (word & ((1U << EventWord::y_shift) - 1U));
  const std::uint32_t y = 8 * (word >> EventWord::y_shift & ((1U << 13) - 1U)) + c;
  const bool row_wanted = y - (desk.rectangle.x & 0xFFFFU) < desk.rectangle.x >> 16;
  const std::uint64_t origin = static_cast<std::uint64_t>(desk.place.y) << 32 | desk.place.x;
  std::uint8_t* to = plane + origin + static_cast<std::uint64_t>(y) * desk.place.z + x;
  const std::uint32_t from_first = x - (desk.rectangle.y & 0xFFFFU);
  const bool whole = from_first < desk.rectangle.y >> 16 && from_first + width <= desk.rectangle.y >> 16;
  if ((desk.place.w & Desk::aligned) == 0 || !whole) {
    if (row_wanted) write_bytes(to, pixels, x, width, desk.rectangle.y, (desk.place.w & Desk::inverted) != 0);
    return;
  }
  const bool park = (word & EventWord::park_bit) != 0;
  if constexpr (mode == LaneMode::pairs) {
    const uint4 row = make_uint4(pixels.words[0], pixels.words[1], pixels.words[2], pixels.words[3]);
    if (park) {
      __stcg(reinterpret_cast<uint4*>(parked + 16 * c), row);
    } else if (row_wanted) {
      if ((word & EventWord::waits_bit) != 0) __stcs(reinterpret_cast<uint4*>(to) - 1, waiting);
      __stcs(reinterpret_cast<uint4*>(to), row);
    }
  } else {
    const uint2 row = make_uint2(pixels.words[0], pixels.words[1]);
    const std::uint32_t part = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to) / 8 % 4);
    uint2* const sector = reinterpret_cast<uint2*>(parked + 32 * c);
    if (park) {
      __stcg(sector + part, row);
    } else if (row_wanted) {
      if ((word & EventWord::waits_bit) != 0) {
        const std::uint32_t first = word >> EventWord::first_shift & 3U;
        uint2* const before = reinterpret_cast<uint2*>(to) - part;
#pragma unroll
        for (std::uint32_t i = 0; i < 3; ++i) {
          if (i >= first && i < part) before[i] = __ldcg(sector + i);
        }
      }
      *reinterpret_cast<uint2*>(to) = row;
    }
  }
}

}  // namespace
}  // namespace slidestream::cuda
