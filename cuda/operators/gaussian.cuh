#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cuda/operators/image_task.hpp"
#include "cuda/operators/primitives.cuh"
#include "image/mirror.hpp"
#include "operators/gaussian/gaussian.hpp"

/// \file
/// The Gaussian, a tile a block: sums down the columns go to shared memory, those across them are made there.

namespace slidestream::cuda {

namespace {

/// What a block makes. `quarter`: a fourth of the pixels on each side that are weighed, at least the radius.
template <int channels, int quarter>
struct GaussianShape {
  static constexpr int threads = 256;
  static constexpr int reach = 4 * quarter;
  static constexpr int rows_of_item = 8;  ///< that a thread sums down at a time
  static constexpr int bands = 4;         ///< of so many rows
  static constexpr int rows = bands * rows_of_item;
  static constexpr int source_rows = rows + 2 * reach;
  /// Groups of four pixels: with those on both sides a word of each band for every thread.
  static constexpr int source_groups = threads / bands / channels;
  static constexpr int groups = source_groups - 2 * quarter;
  static constexpr int columns = 4 * groups;
  // Shared memory, in bytes.
  static constexpr std::size_t offsets = 0;
  static constexpr std::size_t sums = offsets + sizeof(std::int64_t) * source_rows;
  static constexpr std::size_t made = sums + sizeof(std::uint32_t) * rows * channels * 4 * source_groups;
  static constexpr std::size_t shared_bytes = made + std::size_t{rows} * columns * channels;
  static_assert(shared_bytes <= 48 * 1024);
};

struct GaussianTask {
  ImageTask image;
  std::uint32_t across;                                        ///< tiles
  std::uint32_t weights[operators::GaussianWeights().size()];  ///< from the centre outwards
};

template <class Shape>
GaussianTask make_gaussian_task(const ImageTask& image, const operators::GaussianWeights& weights) {
  GaussianTask task{};
  task.image = image;
  task.across = static_cast<std::uint32_t>(blocks_for(image.width, Shape::columns));
  std::copy(weights.begin(), weights.end(), task.weights);
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

/// Four samples of each of `rows` rows, one below the other, weighed.
template <class Shape, class Load>
__device__ __forceinline__ void sum_down(std::uint32_t (&sums)[Shape::rows_of_item][4], const GaussianTask& task,
                                         const Load& load) {
#pragma unroll
  for (auto& row : sums) {
    for (std::uint32_t& sum : row) sum = 0;
  }
#pragma unroll
  for (int j = 0; j < Shape::rows_of_item + 2 * Shape::reach; ++j) {
    const std::uint32_t word = load(j);
    const std::uint32_t samples[4] = {word & 255U, word >> 8 & 255U, word >> 16 & 255U, word >> 24};
#pragma unroll
    for (int i = 0; i < Shape::rows_of_item; ++i) {
      const int distance = j - i < Shape::reach ? Shape::reach - (j - i) : j - i - Shape::reach;
      if (distance > Shape::reach) continue;
#pragma unroll
      for (int b = 0; b < 4; ++b) sums[i][b] += task.weights[distance] * samples[b];
    }
  }
}

/// Shared memory has each channel and each pixel of four in a row of its own, so that what a thread reads lies beside
/// what its neighbours do.
template <int channels, class Shape>
__device__ __forceinline__ std::uint32_t* sums_of(int row, int channel, int pixel) {
  auto* const sums = reinterpret_cast<std::uint32_t*>(block_memory() + Shape::sums);
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
  const std::int32_t x = tile_x - Shape::reach + 4 * group;
  const std::int64_t* const rows = offsets + band * Shape::rows_of_item;
  std::uint32_t sums[Shape::rows_of_item][4];
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

/// Four pixels of a channel, rounded: (sum + 2^31) >> 32.
template <int channels, class Shape>
__device__ __forceinline__ void sum_across(const GaussianTask& task, int row, int channel, int group,
                                           std::uint32_t (&made)[4]) {
  std::uint32_t sums[4 + 2 * Shape::reach];
#pragma unroll
  for (int p = 0; p < 4 + 2 * Shape::reach; ++p) {
    sums[p] = sums_of<channels, Shape>(row, channel, p % 4)[group + p / 4];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t* const centre = sums + i + Shape::reach;
    std::uint64_t sum = (std::uint64_t{1} << 31) + std::uint64_t{task.weights[0]} * centre[0];
#pragma unroll
    for (int k = 1; k <= Shape::reach; ++k) sum += std::uint64_t{task.weights[k]} * (centre[-k] + centre[k]);
    made[i] = static_cast<std::uint32_t>(sum >> 32);
  }
}

template <int channels, int quarter>
__global__ void __launch_bounds__(256) gaussian_pixels(const __grid_constant__ GaussianTask task) {
  using Shape = GaussianShape<channels, quarter>;
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
  std::uint8_t* const made = block_memory() + Shape::made;
  constexpr int row_bytes = Shape::columns * channels;
  for (int item = thread; item < Shape::rows * channels * Shape::groups; item += Shape::threads) {
    const int group = item % Shape::groups;
    const int channel = item / Shape::groups % channels;
    const int row = item / Shape::groups / channels;
    std::uint32_t values[4];
    sum_across<channels, Shape>(task, row, channel, group, values);
    std::uint8_t* const to = made + row * row_bytes + 4 * channels * group + channel;
    if constexpr (channels == 1) {
      *reinterpret_cast<std::uint32_t*>(to) = values[0] | values[1] << 8 | values[2] << 16 | values[3] << 24;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) to[channels * i] = static_cast<std::uint8_t>(values[i]);
    }
  }
  __syncthreads();
  const int rows = std::min(int{Shape::rows}, image.y + image.height - tile_y);
  const int bytes = channels * std::min(int{Shape::columns}, image.x + image.width - tile_x);
  for (int item = thread; item < rows * (row_bytes / 4); item += Shape::threads) {
    const int row = item / (row_bytes / 4);
    const int at = 4 * (item % (row_bytes / 4));
    const std::uint8_t* const from = made + row * row_bytes + at;
    std::uint8_t* const to =
        image.out + (tile_y - image.y + row) * image.out_pitch + channels * (tile_x - image.x) + at;
    if (image.aligned && at + 4 <= bytes) {
      *reinterpret_cast<std::uint32_t*>(to) = *reinterpret_cast<const std::uint32_t*>(from);
    } else {
      for (int i = 0; i < 4 && at + i < bytes; ++i) to[i] = from[i];
    }
  }
}

}  // namespace

}  // namespace slidestream::cuda
