#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/operators/image_task.hpp"

/// \file
/// Copies rows in whole vectors: rows of threads' vectors follow each other, so that all of them are busy at any width.

namespace slidestream::cuda {

namespace {

struct CopyShape {
  static constexpr int threads = 256;
  static constexpr unsigned vectors = 4;  ///< that a thread asks for before it writes the first
};

struct CopyTask {
  ImageTask image;
  std::uint32_t pixel_bytes;
  std::uint32_t across;   ///< vectors of 16 bytes in a row, the last perhaps not whole
  std::uint32_t vectors;  ///< all of them
};

CopyTask make_copy_task(const ImageTask& image, std::size_t pixel_bytes) {
  const auto bytes = static_cast<std::uint32_t>(pixel_bytes);
  const auto across = static_cast<std::uint32_t>(blocks_for(std::int64_t{image.width} * bytes, 16));
  return {image, bytes, across, across * static_cast<std::uint32_t>(image.height)};
}

unsigned copy_blocks(const CopyTask& task) {
  return static_cast<unsigned>(blocks_for(task.vectors, CopyShape::threads * CopyShape::vectors));
}

/// For rows that are aligned.
__global__ void __launch_bounds__(CopyShape::threads) copy_rows(const __grid_constant__ CopyTask task) {
  const ImageTask& image = task.image;
  const std::uint32_t row_bytes = task.pixel_bytes * static_cast<std::uint32_t>(image.width);
  const std::uint8_t* const source =
      image.in + (image.y - image.in_y) * image.in_pitch + std::int64_t{task.pixel_bytes} * (image.x - image.in_x);
  const unsigned first = blockIdx.x * (CopyShape::threads * CopyShape::vectors) + threadIdx.x;
  uint4 loaded[CopyShape::vectors];
#pragma unroll
  for (unsigned i = 0; i < CopyShape::vectors; ++i) {
    const unsigned vector = first + i * CopyShape::threads;
    if (vector >= task.vectors) break;
    const std::uint32_t y = vector / task.across;
    const std::uint32_t at = 16 * (vector - y * task.across);
    const std::uint8_t* const from = source + y * image.in_pitch + at;
    if (at + 16 <= row_bytes) loaded[i] = *reinterpret_cast<const uint4*>(from);
  }
#pragma unroll
  for (unsigned i = 0; i < CopyShape::vectors; ++i) {
    const unsigned vector = first + i * CopyShape::threads;
    if (vector >= task.vectors) break;
    const std::uint32_t y = vector / task.across;
    const std::uint32_t at = 16 * (vector - y * task.across);
    std::uint8_t* const to = image.out + y * image.out_pitch + at;
    if (at + 16 <= row_bytes) {
      *reinterpret_cast<uint4*>(to) = loaded[i];
    } else {
      const std::uint8_t* const from = source + y * image.in_pitch + at;
      for (std::uint32_t b = 0; b < row_bytes - at; ++b) to[b] = from[b];
    }
  }
}

}  // namespace

}  // namespace slidestream::cuda
