#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda/device/primitives.cuh"
#include "cuda/jpeg/words.hpp"
#include "cuda/operators/image_task.hpp"
#include "image/mirror.hpp"
#include "operators/gaussian/gaussian.hpp"

/// \file
/// The Gaussian, a tile a block: sums down the columns go to shared memory, those across them are made there.
///
/// Sums down are whole numbers below 2^24, which float32 holds: fused multiply-add makes them exactly, at twice the
/// rate of integers. Across they have 40 bits; in float32 they are right but for a small error, and where that could
/// decide how a pixel is rounded they are made again in 64 bits.

namespace slidestream::cuda {

namespace {

/// What a block makes. `reach`: pixels on each side that are weighed, at least the radius.
template <int channels, int most>
struct GaussianShape {
  static constexpr int threads = 256;
  static constexpr int reach = most;
  static constexpr int quarter = (reach + 3) / 4;  ///< groups of four pixels on each side
  static constexpr int rows_of_item = 8;           ///< that a thread sums down at a time
  static constexpr int bands = 4;                  ///< of so many rows
  static constexpr int rows = bands * rows_of_item;
  static constexpr int source_rows = rows + 2 * reach;
  /// Groups of four pixels: with those on both sides a word of each band for every thread.
  static constexpr int source_groups = threads / bands / channels;
  static constexpr int groups = source_groups - 2 * quarter;
  static constexpr int columns = 4 * groups;
  // Shared memory, in bytes.
  static constexpr std::size_t offsets = 0;
  static constexpr std::size_t sums = offsets + sizeof(std::int64_t) * source_rows;
  static constexpr std::size_t shared_bytes = sums + sizeof(float) * rows * channels * 4 * source_groups;
  static_assert(shared_bytes <= 48 * 1024);
};

/// From the centre outwards.
template <class T>
using GaussianTable = T[operators::GaussianWeights().size()];

struct GaussianTask {
  ImageTask image;
  std::uint32_t across;  ///< tiles
  GaussianTable<std::uint32_t> weights;
  GaussianTable<float> down;   ///< the same
  GaussianTable<float> rates;  ///< divided by 2^32
};

template <class Shape>
GaussianTask make_gaussian_task(const ImageTask& image, const operators::GaussianWeights& weights) {
  GaussianTask task{};
  task.image = image;
  task.across = static_cast<std::uint32_t>(blocks_for(image.width, Shape::columns));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    task.weights[i] = static_cast<std::uint32_t>(weights[i]);
    task.down[i] = static_cast<float>(weights[i]);
    task.rates[i] = task.down[i] * 0x1p-32F;
  }
  return task;
}

template <class Shape>
unsigned gaussian_blocks(const GaussianTask& task) {
  return static_cast<unsigned>(task.across * blocks_for(task.image.height, Shape::rows));
}

/// Where an axis' sample beyond the ends is. What lies beyond those that are held weighs nothing: any will do.
__device__ __forceinline__ std::int32_t held(std::int32_t at, std::int32_t size, std::int32_t begin, std::int32_t end) {
  if (at >= begin && at < end) return at;
  return std::clamp(static_cast<std::int32_t>(mirror_reflect(at, size)), begin, end - 1);
}

/// Byte `i` of a word.
template <int i>
__device__ __forceinline__ float float_of_byte(std::uint32_t word) {
  // 2^23 + the byte, which is exact.
  return __uint_as_float(choose_bytes(word, 0x4B000000U, 0x7650U + i)) - 8388608.0F;
}

/// Four samples side by side of each of an item's rows, weighed down their columns.
template <class Shape, class Load>
__device__ __forceinline__ void sum_down(float (&sums)[Shape::rows_of_item][4], const GaussianTask& task,
                                         const Load& load) {
#pragma unroll
  for (auto& row : sums) {
    for (float& sum : row) sum = 0.0F;
  }
#pragma unroll
  for (int j = 0; j < Shape::rows_of_item + 2 * Shape::reach; ++j) {
    const std::uint32_t word = load(j);
    const float samples[4] = {float_of_byte<0>(word), float_of_byte<1>(word), float_of_byte<2>(word),
                              float_of_byte<3>(word)};
#pragma unroll
    for (int i = 0; i < Shape::rows_of_item; ++i) {
      const int distance = j - i < Shape::reach ? Shape::reach - (j - i) : j - i - Shape::reach;
      if (distance > Shape::reach) continue;
#pragma unroll
      for (int b = 0; b < 4; ++b) sums[i][b] += task.down[distance] * samples[b];
    }
  }
}

/// Shared memory has each channel and each pixel of four in a row of its own, so that what a thread reads lies beside
/// what its neighbours do.
template <int channels, class Shape>
__device__ __forceinline__ float* sums_of(int row, int channel, int pixel) {
  auto* const sums = reinterpret_cast<float*>(block_memory() + Shape::sums);
  return sums + ((row * channels + channel) * 4 + pixel) * Shape::source_groups;
}

template <int channels, class Shape>
__device__ __forceinline__ void sum_columns(const GaussianTask& task, std::int32_t tile_x) {
  const ImageTask& image = task.image;
  const auto* const offsets = reinterpret_cast<const std::int64_t*>(block_memory() + Shape::offsets);
  constexpr int words = Shape::source_groups * channels;
  const int word = static_cast<int>(threadIdx.x) % (Shape::threads / Shape::bands);
  if (word >= words) return;
  const int band = static_cast<int>(threadIdx.x) / (Shape::threads / Shape::bands);
  const int group = word / channels;
  const int first = word % channels * 4;  // sample of the group
  const std::int32_t x = tile_x + 4 * (group - Shape::quarter);
  const std::int64_t* const rows = offsets + band * Shape::rows_of_item;
  float sums[Shape::rows_of_item][4];
  if (image.aligned && x >= image.in_x && x + 4 <= image.in_right) {
    const std::uint8_t* const from = image.in + channels * (x - image.in_x) + first;
    sum_down<Shape>(sums, task, [&](int j) { return *reinterpret_cast<const std::uint32_t*>(from + rows[j]); });
  } else {
    std::int32_t places[4];
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const std::int32_t column =
          held(x + (first + b) / channels, image.image_width, image.in_x, image.in_right) - image.in_x;
      places[b] = channels * column + (first + b) % channels;
    }
    sum_down<Shape>(sums, task, [&](int j) {
      const std::uint8_t* const from = image.in + rows[j];
      return from[places[0]] | std::uint32_t{from[places[1]]} << 8 | std::uint32_t{from[places[2]]} << 16 |
             std::uint32_t{from[places[3]]} << 24;
    });
  }
#pragma unroll
  for (int b = 0; b < 4; ++b) {
    const int channel = (first + b) % channels;
    const int pixel = (first + b) / channels;
#pragma unroll
    for (int i = 0; i < Shape::rows_of_item; ++i) {
      sums_of<channels, Shape>(band * Shape::rows_of_item + i, channel, pixel)[group] = sums[i][b];
    }
  }
}

/// (sum + 2^31) >> 32 in 64 bits. `centre`: sums down.
template <int reach>
__device__ __forceinline__ std::uint32_t sum_exactly(const GaussianTask& task, const float* centre) {
  const auto whole = [centre](int k) { return static_cast<std::uint32_t>(centre[k]); };
  std::uint64_t sum = (std::uint64_t{1} << 31) + std::uint64_t{task.weights[0]} * whole(0);
#pragma unroll
  for (int k = 1; k <= reach; ++k) sum += std::uint64_t{task.weights[k]} * (whole(-k) + whole(k));
  return static_cast<std::uint32_t>(sum >> 32);
}

/// Four pixels of a channel, rounded.
template <int channels, class Shape>
__device__ __forceinline__ void sum_across(const GaussianTask& task, int row, int channel, int group,
                                           std::uint32_t (&made)[4]) {
  constexpr int reach = Shape::reach;
  float sums[4 + 2 * reach];
#pragma unroll
  for (int i = 0; i < 4 + 2 * reach; ++i) {
    const int p = i + 4 * Shape::quarter - reach;
    sums[i] = sums_of<channels, Shape>(row, channel, p % 4)[group + p / 4];
  }
  // Each of 2 reach + 1 steps, and of reach sums of two, is wrong by 2^-24 of what is at most 255.
  constexpr float error = 0x1p-16F * static_cast<float>(3 * reach + 2);
  bool close = false;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float* const centre = sums + i + reach;
    float sum = task.rates[0] * centre[0];
#pragma unroll
    for (int k = 1; k <= reach; ++k) sum += task.rates[k] * (centre[-k] + centre[k]);
    const float rounded = sum + 8388608.0F;
    close = close || std::fabs(sum - (rounded - 8388608.0F)) > 0.5F - error;
    made[i] = __float_as_uint(rounded) & 255U;
  }
  if (!close) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) made[i] = sum_exactly<reach>(task, sums + i + reach);
}

template <int channels, int reach>
__global__ void __launch_bounds__(256) gaussian_pixels(const __grid_constant__ GaussianTask task) {
  using Shape = GaussianShape<channels, reach>;
  const ImageTask& image = task.image;
  const std::int32_t tile_x = image.x + Shape::columns * static_cast<std::int32_t>(blockIdx.x % task.across);
  const std::int32_t tile_y = image.y + Shape::rows * static_cast<std::int32_t>(blockIdx.x / task.across);
  auto* const offsets = reinterpret_cast<std::int64_t*>(block_memory() + Shape::offsets);
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < Shape::source_rows) {
    const std::int32_t y = held(tile_y - Shape::reach + thread, image.image_height, image.in_y, image.in_bottom);
    offsets[thread] = (y - image.in_y) * image.in_pitch;
  }
  __syncthreads();
  sum_columns<channels, Shape>(task, tile_x);
  __syncthreads();
  const int rows = std::min(int{Shape::rows}, image.y + image.height - tile_y);
  for (int item = thread; item < rows * Shape::groups; item += Shape::threads) {
    const int group = item % Shape::groups;
    const int row = item / Shape::groups;
    const std::int32_t x = tile_x + 4 * group;
    const int wanted = channels * std::min(image.x + image.width - x, 4);  // bytes
    if (wanted <= 0) continue;
    std::uint32_t words[channels] = {};
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      std::uint32_t values[4];
      sum_across<channels, Shape>(task, row, c, group, values);
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const int at = channels * p + c;
        words[at / 4] |= values[p] << (8 * (at % 4));
      }
    }
    std::uint8_t* const to = image.out + (tile_y - image.y + row) * image.out_pitch + channels * (x - image.x);
    if (image.aligned && wanted == 4 * channels) {
#pragma unroll
      for (int w = 0; w < channels; ++w) reinterpret_cast<std::uint32_t*>(to)[w] = words[w];
    } else {
#pragma unroll
      for (int at = 0; at < 4 * channels; ++at) {
        if (at < wanted) to[at] = static_cast<std::uint8_t>(words[at / 4] >> (8 * (at % 4)));
      }
    }
  }
}

}  // namespace

}  // namespace slidestream::cuda
