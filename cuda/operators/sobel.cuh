#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/device/primitives.cuh"
#include "cuda/jpeg/words.hpp"
#include "cuda/operators/image_task.hpp"
#include "operators/sobel/sobel_pixel.hpp"

/// \file
/// Sobel's operator: a thread walks down some columns, and keeps the rows that the next pixels need in registers.

namespace slidestream::cuda {

namespace {

struct SobelShape {
  static constexpr int threads = 128;
  static constexpr int rows = 16;  ///< that a thread makes
};

/// Words of four columns that a thread makes: 8 bytes at once go to the plane, or 16.
template <class T>
inline constexpr int sobel_words = sizeof(T) == 1 ? 2 : 1;

constexpr int sobel_columns(int words) { return 4 * words; }

/// Samples of a row: some words, and those beside them.
template <int words>
struct SobelRow {
  std::uint32_t samples[words];
  std::uint32_t ends;  ///< right, and left in the upper half
};

/// Pairs of 16 bits: (0, 2), (1, 3) of each word.
template <int words>
struct SobelPairs {
  std::uint32_t even[words];
  std::uint32_t odd[words];
  std::uint32_t ends;
};

/// Columns [x, x + n) of a row, which begin at `at`, and the two beside them. One pixel beyond an end of the image is
/// the end's own, as `mirror_symmetric` has it. `whole`: n is all, and `at` lies at whole vectors.
template <int words, bool whole>
__device__ __forceinline__ SobelRow<words> load_sobel_row(const ImageTask& task, const std::uint8_t* at, std::int32_t x,
                                                          std::int32_t n) {
  constexpr int columns = sobel_columns(words);
  SobelRow<words> loaded;
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  if constexpr (whole) {
    if constexpr (words == 2) {
      const uint2 v = *reinterpret_cast<const uint2*>(at);
      loaded.samples[0] = v.x;
      loaded.samples[1] = v.y;
    } else {
      loaded.samples[0] = *reinterpret_cast<const std::uint32_t*>(at);
    }
    left = x > 0 ? at[-1] : loaded.samples[0] & 255U;
    right = x + columns < task.image_width ? at[columns] : loaded.samples[words - 1] >> 24;
  } else {
    const auto sample = [&](std::int32_t i) -> std::uint32_t {
      return at[std::clamp(i, -x, task.image_width - 1 - x)];
    };
#pragma unroll
    for (int w = 0; w < words; ++w) {
      loaded.samples[w] = 0;
#pragma unroll
      for (int i = 4 * w; i < 4 * w + 4; ++i) {
        // Beyond the last only its neighbour counts.
        if (i <= n) loaded.samples[w] |= sample(i) << (8 * (i % 4));
      }
    }
    left = sample(-1);
    right = sample(n);
  }
  loaded.ends = right | left << 16;
  return loaded;
}

template <int words>
__device__ __forceinline__ SobelPairs<words> pairs_of(const SobelRow<words>& row) {
  SobelPairs<words> pairs;
#pragma unroll
  for (int w = 0; w < words; ++w) {
    pairs.even[w] = choose_bytes(row.samples[w], 0, 0x4240);
    pairs.odd[w] = choose_bytes(row.samples[w], 0, 0x4341);
  }
  pairs.ends = row.ends;
  return pairs;
}

/// A half of a pair without the bias.
template <int half>
__device__ __forceinline__ float gradient_of(std::uint32_t pair) {
  // 2^23 + the half, which is exact.
  const float biased = __uint_as_float(choose_bytes(pair, 0x4B000000U, half == 0 ? 0x7610 : 0x7632));
  return biased - (8388608.0F + static_cast<float>(operators::gradient_bias));
}

/// sqrt(s / 32), correctly rounded: s < 2^24 and s / 32 are exact.
__device__ __forceinline__ float steepness(float x, float y) {
  return __fsqrt_rn((x * x + y * y) * operators::sobel_scale);
}

/// sqrt(s / 32), rounded half up, in the lowest byte. That is m for 8 (2m - 1)^2 <= s < 8 (2m + 1)^2, and s + 1/2 lies
/// between such bounds by 1/2 or more. So the root is m - 1/2 or more than that by 1 / (64 (2m - 1)), below m + 1/2 by
/// as much; at 255, where that is least, 3.07e-5. The approximate root is wrong by at most 2^-23 of itself, 3.04e-5.
__device__ __forceinline__ std::uint32_t rounded_steepness(float x, float y) {
  const float root = approximate_sqrt((x * x + (y * y + 0.5F)) * operators::sobel_scale);
  return __float_as_uint(root + 8388608.0F);
}

template <int words>
__device__ __forceinline__ void store_pixels(std::uint8_t* to, const float (&gx)[4 * words],
                                             const float (&gy)[4 * words], std::int32_t n, bool whole) {
  std::uint32_t made[words];
#pragma unroll
  for (int w = 0; w < words; ++w) {
    std::uint32_t m[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) m[i] = rounded_steepness(gx[4 * w + i], gy[4 * w + i]);
    made[w] = choose_bytes(choose_bytes(m[0], m[1], 0x0040), choose_bytes(m[2], m[3], 0x0040), 0x5410);
  }
  if (whole) {
    *reinterpret_cast<uint2*>(to) = {made[0], made[1]};
    return;
  }
#pragma unroll
  for (int i = 0; i < 4 * words; ++i) {
    if (i < n) to[i] = static_cast<std::uint8_t>(made[i / 4] >> (8 * (i % 4)));
  }
}

template <int words>
__device__ __forceinline__ void store_pixels(float* to, const float (&gx)[4 * words], const float (&gy)[4 * words],
                                             std::int32_t n, bool whole) {
  float made[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) made[i] = steepness(gx[i], gy[i]);
  if (whole) {
    *reinterpret_cast<float4*>(to) = {made[0], made[1], made[2], made[3]};
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < n) to[i] = made[i];
  }
}

/// Pixels of a row from three rows of samples.
template <class T, int words, bool whole>
__device__ __forceinline__ void make_sobel_row(T* to, const SobelPairs<words>& up, const SobelPairs<words>& middle,
                                               const SobelPairs<words>& down, std::int32_t n) {
  using operators::SobelColumn;
  using operators::SobelGradients;
  using operators::two_pixels;
  const auto column = [](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return operators::sobel_column(a, b, c, two_pixels);
  };
  // The second of one pair and the first of the next.
  const auto between = [](const SobelColumn& a, const SobelColumn& b) -> SobelColumn {
    return {choose_bytes(a.sum, b.sum, 0x5432), choose_bytes(a.difference, b.difference, 0x5432)};
  };
  SobelColumn even[words + 1];
  SobelColumn odd[words + 1];  // from the left neighbour on
  odd[0] = even[words] = column(up.ends, middle.ends, down.ends);
#pragma unroll
  for (int w = 0; w < words; ++w) {
    even[w] = column(up.even[w], middle.even[w], down.even[w]);
    odd[w + 1] = column(up.odd[w], middle.odd[w], down.odd[w]);
  }
  float gx[4 * words];
  float gy[4 * words];
#pragma unroll
  for (int w = 0; w < words; ++w) {
    const SobelGradients first =
        operators::sobel_gradients(between(odd[w], odd[w + 1]), even[w], odd[w + 1], two_pixels);
    const SobelGradients second =
        operators::sobel_gradients(even[w], odd[w + 1], between(even[w], even[w + 1]), two_pixels);
    gx[4 * w] = gradient_of<0>(first.x);
    gx[4 * w + 1] = gradient_of<0>(second.x);
    gx[4 * w + 2] = gradient_of<1>(first.x);
    gx[4 * w + 3] = gradient_of<1>(second.x);
    gy[4 * w] = gradient_of<0>(first.y);
    gy[4 * w + 1] = gradient_of<0>(second.y);
    gy[4 * w + 2] = gradient_of<1>(first.y);
    gy[4 * w + 3] = gradient_of<1>(second.y);
  }
  store_pixels<words>(to, gx, gy, n, whole);
}

/// Columns [x, x + n) of rows [y, end).
template <class T, bool whole>
__device__ __forceinline__ void sobel_walk(const ImageTask& task, std::int32_t x, std::int32_t n, std::int32_t y,
                                           std::int32_t end) {
  constexpr int words = sobel_words<T>;
  const std::int32_t last = task.image_height - 1;
  const std::uint8_t* at = task.in + (std::max(y - 1, 0) - task.in_y) * task.in_pitch + (x - task.in_x);
  const auto load = [&] { return load_sobel_row<words, whole>(task, at, x, n); };
  SobelPairs<words> up = pairs_of(load());
  if (y > 0) at += task.in_pitch;
  SobelPairs<words> middle = pairs_of(load());
  if (y < last) at += task.in_pitch;
  SobelRow<words> next = load();
  std::uint8_t* to = task.out + (y - task.y) * task.out_pitch + static_cast<std::int64_t>(sizeof(T)) * (x - task.x);
  const std::int32_t below = std::min(end, last);
#pragma unroll 4
  for (; y < end; ++y, to += task.out_pitch) {
    const SobelPairs<words> down = pairs_of(next);
    // The row after the next is asked for before this one's sums; at the end one that is there.
    if (y + 2 <= below) at += task.in_pitch;
    next = load();
    make_sobel_row<T, words, whole>(reinterpret_cast<T*>(to), up, middle, down, n);
    up = middle;
    middle = down;
  }
}

/// Blocks across times blocks down of them. `T` is the output's sample type.
template <class T>
__global__ void __launch_bounds__(SobelShape::threads)
    sobel_pixels(const __grid_constant__ ImageTask task, unsigned across) {
  constexpr int columns = sobel_columns(sobel_words<T>);
  const auto chunk = static_cast<std::int32_t>(blockIdx.x % across * SobelShape::threads + threadIdx.x);
  const std::int32_t left = task.width - columns * chunk;
  if (left <= 0) return;
  const std::int32_t x = task.x + columns * chunk;
  const std::int32_t n = std::min(left, columns);
  const std::int32_t y = task.y + static_cast<std::int32_t>(blockIdx.x / across) * SobelShape::rows;
  const std::int32_t end = std::min(y + SobelShape::rows, task.y + task.height);
  if (task.aligned && n == columns) {
    sobel_walk<T, true>(task, x, n, y, end);
  } else {
    sobel_walk<T, false>(task, x, n, y, end);
  }
}

/// Blocks across of a task.
template <class T>
unsigned sobel_blocks_across(const ImageTask& task) {
  return static_cast<unsigned>(blocks_for(task.width, sobel_columns(sobel_words<T>) * SobelShape::threads));
}
/// All blocks.
template <class T>
unsigned sobel_blocks(const ImageTask& task) {
  return static_cast<unsigned>(sobel_blocks_across<T>(task) * blocks_for(task.height, SobelShape::rows));
}

}  // namespace

}  // namespace slidestream::cuda
