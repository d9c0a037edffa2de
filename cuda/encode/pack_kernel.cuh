#pragma once

#include <cstdint>

#include "cuda/device/primitives.cuh"
#include "cuda/encode/band.hpp"

/// \file
/// Where tiles go, and bands with stuffed bytes to there.

namespace slidestream::cuda {
namespace {

inline constexpr std::uint32_t offset_threads = 1024;
/// Lengths that a thread adds up at a time.
inline constexpr std::uint32_t offset_tiles = 4;
inline constexpr std::uint32_t pack_warps = 8;
/// Bytes that a warp puts together before it writes.
inline constexpr std::uint32_t pack_bytes = 512;

/// Bytes on their way out: what was left of those before (and as many that belong to others), the header or stuffed
/// bytes, EOI. Up to a word more than all that may be written.
struct PackStage {
  static constexpr std::uint32_t most_added = 2 * 4 * 32;
  alignas(16) std::uint8_t bytes[pack_bytes + most_added + 16];
};
static_assert(16 + EncodeTables::most_header_bytes <= pack_bytes);

struct OffsetMemory {
  std::uint64_t warps[offset_threads / 32];  ///< sums
};

struct alignas(16) FourWords {
  std::uint32_t words[4];
};

/// offsets[i]: the sum of the lengths before i. For one block of `offset_threads` threads.
__device__ __forceinline__ void sum_lengths(const EncodeTask& task) {
  auto& memory = *reinterpret_cast<OffsetMemory*>(block_memory());
  const std::uint32_t thread = threadIdx.x;
  std::uint64_t before = 0;
  for (std::uint32_t first = 0; first < task.tile_count; first += offset_threads * offset_tiles) {
    const std::uint32_t mine = first + thread * offset_tiles;
    std::uint32_t lengths[offset_tiles];
    std::uint32_t sum = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < offset_tiles; ++i) {
      lengths[i] = mine + i < task.tile_count ? task.lengths[mine + i] : 0;
      sum += lengths[i];
    }
    const std::uint32_t up_to = sum_up_to_lane(sum);
    if (thread % 32 == 31) memory.warps[thread / 32] = up_to;
    __syncthreads();
    std::uint64_t offset = before + up_to - sum;
    for (std::uint32_t warp = 0; warp < offset_threads / 32; ++warp) {
      const std::uint64_t of_warp = memory.warps[warp];
      if (warp < thread / 32) offset += of_warp;
      before += of_warp;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < offset_tiles; ++i) {
      if (mine + i < task.tile_count) task.offsets[mine + i] = offset;
      offset += lengths[i];
    }
    __syncthreads();
  }
  if (thread != 0) return;
  task.offsets[task.tile_count] = before;
  *task.scratch_units = task.counters->scratch_units;
}

/// One bit a byte: whether it is 0xFF.
__device__ __forceinline__ std::uint32_t marked_bytes(std::uint32_t word) {
  const std::uint32_t inverted = ~word;
  return ((inverted & 0xFFU) == 0 ? 1U : 0U) | ((inverted & 0xFF00U) == 0 ? 2U : 0U) |
         ((inverted & 0xFF0000U) == 0 ? 4U : 0U) | ((inverted & 0xFF000000U) == 0 ? 8U : 0U);
}

/// Bytes of a stage on their way to a place of any alignment: whole 16 bytes at a time, of a place that is a multiple
/// of them; the first few are another warp's and stay as they are.
class StagedOutput {
 public:
  __device__ __forceinline__ StagedOutput(PackStage& stage, std::uint8_t* to)
      : stage_(stage), foreign_(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to) & 15U)) {
    to_ = to - foreign_;
    filled_ = foreign_;
  }

  /// Where the next byte goes; valid until `flush`.
  __device__ __forceinline__ std::uint8_t* end() const { return stage_.bytes + filled_; }
  __device__ __forceinline__ void add(std::uint32_t bytes) { filled_ += bytes; }

  /// A word of each lane, its first `count` bytes, each 0xFF followed by a zero. For all lanes of a warp.
  __device__ __forceinline__ void add_words(std::uint32_t lane, std::uint32_t word, std::uint32_t count) {
    // Whether a byte is 0xFF: then one of the inverse is zero.
    const bool stuffed = ((~word - 0x01010101U) & word & 0x80808080U) != 0;
    if (any_lane(stuffed || count < 4)) {
      const std::uint32_t marked = marked_bytes(word) & ((1U << count) - 1);
      const std::uint32_t length = count + static_cast<std::uint32_t>(__popc(marked));
      const std::uint32_t up_to = sum_up_to_lane(length);
      std::uint8_t* to = end() + up_to - length;
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        if (i >= count) continue;
        *to++ = static_cast<std::uint8_t>(word >> 8 * i);
        if ((marked >> i & 1U) != 0) *to++ = 0;
      }
      filled_ += last_lane(up_to);
    } else {
      // Whole words, of which the first begins with the bytes that are there.
      const std::uint32_t shift = filled_ % 4 * 8;
      auto* const words = reinterpret_cast<std::uint32_t*>(stage_.bytes) + filled_ / 4;
      const std::uint32_t there = words[0];
      std::uint32_t before = lane_below(word);
      if (lane == 0) before = there << ((32 - shift) & 31U);
      __syncwarp();
      words[lane] = shifted_in(word, before, shift);
      if (lane == 31 && shift != 0) words[32] = word >> (32 - shift);
      filled_ += 128;
    }
    __syncwarp();
  }

  __device__ __forceinline__ void flush_if_full(std::uint32_t lane) {
    if (filled_ >= pack_bytes) flush(lane);
  }

  /// Writes what fills whole 16 bytes. For all lanes of a warp.
  __device__ __forceinline__ void flush(std::uint32_t lane) {
    __syncwarp();
    const std::uint32_t whole = filled_ / 16;
    const std::uint32_t shared = foreign_ > 0 && whole > 0 ? 1 : 0;
    if (shared != 0 && lane >= foreign_ && lane < 16) to_[lane] = stage_.bytes[lane];
#pragma unroll 1
    for (std::uint32_t i = lane + shared; i < whole; i += 32) {
      reinterpret_cast<FourWords*>(to_)[i] = reinterpret_cast<const FourWords*>(stage_.bytes)[i];
    }
    __syncwarp();
    if (whole == 0) return;
    if (lane < 16) {
      const std::uint8_t rest = stage_.bytes[16 * whole + lane];
      stage_.bytes[lane] = rest;
    }
    foreign_ = 0;
    to_ += 16 * whole;
    filled_ %= 16;
    __syncwarp();
  }

  /// Writes what is left.
  __device__ __forceinline__ void finish(std::uint32_t lane) {
    flush(lane);
    if (lane >= foreign_ && lane < filled_) to_[lane] = stage_.bytes[lane];
  }

 private:
  PackStage& stage_;
  std::uint32_t foreign_;
  std::uint32_t filled_;
  std::uint8_t* to_;
};

/// A warp a band. Tiles that don't fit the output in whole are left out.
__device__ __forceinline__ void pack_bands(const EncodeTask& task) {
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t number = blockIdx.x * pack_warps + warp;
  const std::uint32_t tile = number / task.grid.bands;
  const std::uint32_t band = number - tile * task.grid.bands;
  if (tile >= task.tile_count || task.offsets[tile + 1] > task.output_capacity) return;
  const BandRecord record = task.bands[number];
  if (record.unit == BandRecord::nowhere) return;
  auto& stage = reinterpret_cast<PackStage*>(block_memory())[warp];
  std::uint8_t* const tile_begin = task.output + task.offsets[tile];
  StagedOutput output(stage, band == 0 ? tile_begin : tile_begin + task.header_bytes + record.before);
  if (band == 0) {
#pragma unroll 1
    for (std::uint32_t i = lane; i < task.header_bytes; i += 32) output.end()[i] = task.header[i];
    output.add(task.header_bytes);
  }
  __syncwarp();
  const std::uint32_t* const from = task.scratch + std::uint64_t{record.unit} * (BandRecord::unit_bytes / 4);
  const std::uint32_t words = (record.bytes + 3) / 4;
  // Two reads are under way while a word is stuffed.
  const auto read = [&](std::uint32_t at) { return at < words ? from[at] : 0; };
  std::uint32_t word = read(lane);
  std::uint32_t next = read(lane + 32);
#pragma unroll 1
  for (std::uint32_t at = lane; at - lane < words; at += 32) {
    const std::uint32_t after_next = read(at + 64);
    output.add_words(lane, word, at < words ? min(record.bytes - 4 * at, 4U) : 0);
    output.flush_if_full(lane);
    word = next;
    next = after_next;
  }
  if (band + 1 == task.grid.bands) {
    if (lane < end_bytes) output.end()[lane] = lane == 0 ? 0xFF : 0xD9;
    output.add(end_bytes);
  }
  output.finish(lane);
}

}  // namespace
}  // namespace slidestream::cuda
