#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/jpeg/words.hpp"
#include "cuda/operators/image_task.hpp"
#include "cuda/operators/primitives.cuh"
#include "operators/stain/stain.hpp"

/// \file
/// Stain normalisation: threads look samples up in tables in shared memory. That of logarithms is there once a lane, so
/// that lanes never wait for each other.

namespace slidestream::cuda {

namespace {

struct StainShape {
  static constexpr int threads = 512;
  static constexpr int blocks_per_multiprocessor = 2;
  static constexpr int pixels = 8;  ///< that a thread makes at a time: three vectors of 8 bytes
  static constexpr std::size_t log_bytes = std::size_t{256} * 32 * 4;
};

struct StainTask {
  ImageTask image;
  std::uint32_t across;        ///< pieces of a row
  std::uint32_t pieces;        ///< all of them
  std::int32_t negated[3][3];  ///< the matrix, as the table of exp goes
  std::int32_t logs[256];
  /// The table of exp, which falls: the first of its entries that is at most v.
  std::uint16_t at_most[256];
  std::int32_t last_entry;
};

/// Bytes of shared memory.
std::size_t stain_shared_bytes(const StainTask& task) {
  return StainShape::log_bytes + static_cast<std::size_t>(task.last_entry) + 1;
}

StainTask make_stain_task(const ImageTask& image, const operators::StainMatrix& matrix) {
  StainTask task{};
  task.image = image;
  task.across = static_cast<std::uint32_t>(blocks_for(image.width, StainShape::pixels));
  task.pieces = task.across * static_cast<std::uint32_t>(image.height);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t j = 0; j < 3; ++j) task.negated[c][j] = -matrix[c][j];
  }
  std::copy_n(operators::log_samples().begin(), 256, task.logs);
  const std::vector<std::uint8_t>& table = operators::exp_samples();
  for (std::size_t i = table.size(); i-- > 0;) {
    for (std::size_t v = table[i]; v < 256 && (i == 0 || v < table[i - 1] || v == table[i]); ++v) {
      task.at_most[v] = static_cast<std::uint16_t>(i);
    }
  }
  task.last_entry = static_cast<std::int32_t>(table.size()) - 1;
  return task;
}

/// The block's tables.
struct StainTables {
  const std::int32_t* logs;  ///< this lane's: entry 32 v
  const std::uint8_t* exponentials;
};

__device__ __forceinline__ StainTables fill_stain_tables(const StainTask& task) {
  auto* const logs = reinterpret_cast<std::int32_t*>(block_memory());
  std::uint8_t* const exponentials = block_memory() + StainShape::log_bytes;
  const unsigned lane = threadIdx.x % 32;
  for (unsigned v = threadIdx.x / 32; v < 256; v += StainShape::threads / 32) {
    logs[32 * v + lane] = task.logs[v];
    const int end = v == 0 ? task.last_entry + 1 : task.at_most[v - 1];
    for (int i = task.at_most[v] + static_cast<int>(lane); i < end; i += 32) {
      exponentials[i] = static_cast<std::uint8_t>(v);
    }
  }
  __syncthreads();
  return {logs + lane, exponentials};
}

/// Eight pixels, sample after sample.
struct StainPiece {
  std::uint32_t words[6];
};

__device__ __forceinline__ std::uint32_t sample_of(const StainPiece& piece, int i) {
  return piece.words[i / 4] >> (8 * (i % 4)) & 255U;
}

__device__ __forceinline__ StainPiece load_piece(const std::uint8_t* from, int samples, bool whole) {
  StainPiece piece;
  if (whole) {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const uint2 v = reinterpret_cast<const uint2*>(from)[k];
      piece.words[2 * k] = v.x;
      piece.words[2 * k + 1] = v.y;
    }
    return piece;
  }
#pragma unroll
  for (int i = 0; i < 3 * StainShape::pixels; ++i) {
    if (i % 4 == 0) piece.words[i / 4] = 0;
    if (i < samples) piece.words[i / 4] |= std::uint32_t{from[i]} << (8 * (i % 4));
  }
  return piece;
}

__device__ __forceinline__ void store_piece(std::uint8_t* to, const StainPiece& piece, int samples, bool whole) {
  if (whole) {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      reinterpret_cast<uint2*>(to)[k] = {piece.words[2 * k], piece.words[2 * k + 1]};
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 3 * StainShape::pixels; ++i) {
    if (i < samples) to[i] = static_cast<std::uint8_t>(sample_of(piece, i));
  }
}

__device__ __forceinline__ StainPiece stained(const StainTask& task, const StainTables& tables,
                                              const StainPiece& from) {
  StainPiece made;
#pragma unroll
  for (int p = 0; p < StainShape::pixels; ++p) {
    std::int32_t logs[3];
#pragma unroll
    for (int j = 0; j < 3; ++j) logs[j] = tables.logs[32 * sample_of(from, 3 * p + j)];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      std::int64_t negated = operators::half_stain_step;
#pragma unroll
      for (int j = 0; j < 3; ++j) negated += std::int64_t{task.negated[c][j]} * logs[j];
      const int i = 3 * p + c;
      if (i % 4 == 0) made.words[i / 4] = 0;
      made.words[i / 4] |= std::uint32_t{tables.exponentials[operators::exp_entry(negated, task.last_entry)]}
                           << (8 * (i % 4));
    }
  }
  return made;
}

/// Any number of blocks: they share the pieces.
__global__ void __launch_bounds__(StainShape::threads, 2) stain_pixels(const __grid_constant__ StainTask task) {
  const StainTables tables = fill_stain_tables(task);
  const ImageTask& image = task.image;
  for (unsigned piece = blockIdx.x * StainShape::threads + threadIdx.x; piece < task.pieces;
       piece += gridDim.x * StainShape::threads) {
    const auto y = static_cast<std::int32_t>(piece / task.across);
    const std::int32_t x = StainShape::pixels * static_cast<std::int32_t>(piece % task.across);
    const int samples = 3 * std::min(image.width - x, int{StainShape::pixels});
    const bool whole = image.aligned && samples == 3 * StainShape::pixels;
    const std::uint8_t* const from =
        image.in + (image.y + y - image.in_y) * image.in_pitch + 3 * (image.x + x - image.in_x);
    store_piece(image.out + y * image.out_pitch + 3 * x, stained(task, tables, load_piece(from, samples, whole)),
                samples, whole);
  }
}

}  // namespace

}  // namespace slidestream::cuda
