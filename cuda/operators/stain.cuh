#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "cuda/device/primitives.cuh"
#include "cuda/jpeg/words.hpp"
#include "cuda/operators/image_task.hpp"
#include "operators/stain/stain.hpp"

/// \file
/// Stain normalisation: threads look samples up in tables in shared memory. Those of logarithms are there once per lane
/// where a device has room for it, so that no two lanes want one bank, else once for two lanes. Their rows are 256
/// bytes apart: a sample in the second byte of a word and the lane's place in the first are an address, in one
/// instruction.

namespace slidestream::cuda {

namespace {

struct StainShape {
  static constexpr int threads = 1024;
  static constexpr int blocks_per_multiprocessor = 1;
  static constexpr int pixels = 8;  ///< that a thread makes at a time: three vectors of 8 bytes
  /// Logarithms are scaled so that the upper word of a sum is an entry of a table of exp. They keep 30 bits.
  static constexpr int scale = 32 - operators::stain_shift;
  /// Room for a table of exp: at most 2048 ln(256 / 1.5) + 2 entries, see `ExpTable`. All have it, so that its place is
  /// a constant of the instructions that read it.
  static constexpr std::uint32_t table_bytes = 10'624;
};

struct StainTask {
  ImageTask image;
  std::uint32_t across;        ///< pieces of a row
  std::uint32_t pieces;        ///< all of them
  std::int32_t negated[3][3];  ///< the matrix, as the tables of exp go
  std::int64_t start[3];       ///< `stain_start`, scaled as the logarithms are
  std::int32_t logs[3][256];   ///< times 2^`StainShape::scale`
  /// Of the tables of exp, which fall: the first of the entries that are at most v.
  std::uint16_t at_most[3][256];
  std::int32_t last_entry[3];
};

/// Where a block's tables lie in its shared memory, in bytes: of logarithms as many rows beside each other as fit.
template <int Copies>
struct StainLayout {
  static constexpr std::uint32_t row_bytes = 256;
  static constexpr std::uint32_t lane_bytes = sizeof(std::int32_t) * Copies;
  static constexpr std::uint32_t rows_beside = row_bytes / lane_bytes >= 3 ? 3 : 2;
  static constexpr std::uint32_t logs(std::uint32_t j) {
    return j / rows_beside * 256 * row_bytes + j % rows_beside * lane_bytes;
  }
  static constexpr std::uint32_t exponentials(std::uint32_t c) {
    return (3 + rows_beside - 1) / rows_beside * 256 * row_bytes + c * StainShape::table_bytes;
  }
  static constexpr std::size_t bytes = exponentials(3);
};

StainTask make_stain_task(const ImageTask& image, const operators::StainMap& map) {
  StainTask task{};
  task.image = image;
  task.across = static_cast<std::uint32_t>(blocks_for(image.width, StainShape::pixels));
  task.pieces = task.across * static_cast<std::uint32_t>(image.height);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t j = 0; j < 3; ++j) task.negated[c][j] = -map.matrix[c][j];
    const std::array<std::int32_t, 256> logs = operators::log_samples(map.from[c]);
    std::ranges::transform(logs, task.logs[c], [](std::int32_t log) { return log * (1 << StainShape::scale); });
    const operators::ExpTable exponentials = operators::exp_samples(map.to[c]);
    const std::vector<std::uint8_t>& table = exponentials.entries;
    for (std::size_t i = table.size(); i-- > 0;) {
      for (std::size_t v = table[i]; v < 256 && (i == 0 || v < table[i - 1] || v == table[i]); ++v) {
        task.at_most[c][v] = static_cast<std::uint16_t>(i);
      }
    }
    task.start[c] = operators::stain_start(exponentials) * (1 << StainShape::scale);
    if (table.size() > StainShape::table_bytes) throw std::logic_error("a table of exp is longer than it can be");
    task.last_entry[c] = static_cast<std::int32_t>(table.size()) - 1;
  }
  return task;
}

/// Fills the block's tables.
template <int Copies>
__device__ __forceinline__ void fill_stain_tables(const StainTask& task) {
  using Layout = StainLayout<Copies>;
  unsigned char* const memory = block_memory();
  const unsigned lane = threadIdx.x % 32;
  for (unsigned row = threadIdx.x / 32; row < 3 * 256; row += StainShape::threads / 32) {
    const unsigned c = row / 256;
    const unsigned v = row % 256;
    auto* const logs = reinterpret_cast<std::int32_t*>(memory + Layout::logs(c) + v * Layout::row_bytes);
    if (lane < Copies) logs[lane] = task.logs[c][v];
    const int end = v == 0 ? task.last_entry[c] + 1 : task.at_most[c][v - 1];
    for (int i = task.at_most[c][v] + static_cast<int>(lane); i < end; i += 32) {
      memory[Layout::exponentials(c) + static_cast<unsigned>(i)] = static_cast<std::uint8_t>(v);
    }
  }
  __syncthreads();
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

template <int Copies>
__device__ __forceinline__ StainPiece stained(const StainTask& task, const StainPiece& from) {
  using Layout = StainLayout<Copies>;
  const unsigned char* const memory = block_memory();
  const std::uint32_t own = sizeof(std::int32_t) * (threadIdx.x % Copies);
  StainPiece made;
#pragma unroll
  for (int p = 0; p < StainShape::pixels; ++p) {
    std::int32_t logs[3];
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int i = 3 * p + j;
      const std::uint32_t at = choose_bytes(from.words[i / 4], own, 0x5504U | static_cast<unsigned>(i % 4) << 4);
      logs[j] = *reinterpret_cast<const std::int32_t*>(memory + at + Layout::logs(j));
    }
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      std::int64_t sum = task.start[c];
#pragma unroll
      for (int j = 0; j < 3; ++j) sum += std::int64_t{task.negated[c][j]} * logs[j];
      const auto step = static_cast<std::int32_t>(sum >> 32);
      const std::int32_t entry = std::max(std::min(step, task.last_entry[c]), 0);
      const int i = 3 * p + c;
      if (i % 4 == 0) made.words[i / 4] = 0;
      made.words[i / 4] |= std::uint32_t{memory[static_cast<std::uint32_t>(entry) + Layout::exponentials(c)]}
                           << (8 * (i % 4));
    }
  }
  return made;
}

/// Any number of blocks: they share the pieces. \tparam Copies  of the logarithms: 32 or 16
template <int Copies>
__global__ void __launch_bounds__(StainShape::threads, 1) stain_pixels(const __grid_constant__ StainTask task) {
  fill_stain_tables<Copies>(task);
  const ImageTask& image = task.image;
  for (unsigned piece = blockIdx.x * StainShape::threads + threadIdx.x; piece < task.pieces;
       piece += gridDim.x * StainShape::threads) {
    const auto y = static_cast<std::int32_t>(piece / task.across);
    const std::int32_t x = StainShape::pixels * static_cast<std::int32_t>(piece % task.across);
    const int samples = 3 * std::min(image.width - x, int{StainShape::pixels});
    const bool whole = image.aligned && samples == 3 * StainShape::pixels;
    const std::uint8_t* const from =
        image.in + (image.y + y - image.in_y) * image.in_pitch + 3 * (image.x + x - image.in_x);
    store_piece(image.out + y * image.out_pitch + 3 * x, stained<Copies>(task, load_piece(from, samples, whole)),
                samples, whole);
  }
}

}  // namespace

}  // namespace slidestream::cuda
