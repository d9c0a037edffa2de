#pragma once

#include <cstdint>

#include "cuda/device/primitives.cuh"
#include "cuda/encode/band.hpp"

/// \file
/// Tiles to bits without stuffed bytes, in bands. A thread block takes one tile after the other.

namespace slidestream::cuda {
namespace {

/// The first thread finds out which tile comes after the one under way, whose source is `sources[turn]`.
template <class Memory>
__device__ __forceinline__ void find_next_tile(Memory& memory, const EncodeTask& task, std::uint32_t turn) {
  const std::uint32_t next = gridDim.x + atomicAdd(&task.counters->next_tile, 1U);
  TileSource& source = memory.sources[turn ^ 1U];
  // Beyond the last tile, pixels that are there are read in vain.
  source = next < task.tile_count ? source_of(task, next) : memory.sources[turn];
  source.number = next;
}

/// Takes room in scratch memory for a band of the tile that is under way.
template <class Memory>
__device__ __forceinline__ void begin_band(Memory& memory, const EncodeTask& task, std::uint32_t tile,
                                           std::uint32_t band, const BandExtent& extent) {
  const std::uint32_t unit = atomicAdd(&task.counters->scratch_units, extent.units());
  const bool fits = unit <= task.scratch_capacity && extent.units() <= task.scratch_capacity - unit;
  memory.unit = fits ? unit : BandRecord::nowhere;
  memory.pending.tile = tile;
  memory.pending.band = band;
  memory.pending.bytes = extent.bytes;
}

template <class Band>
__device__ __forceinline__ void prepare_block(typename Band::Memory& memory, const EncodeTask& task) {
  const auto* const from = reinterpret_cast<const std::uint32_t*>(task.tables);
  auto* const to = reinterpret_cast<std::uint32_t*>(memory.tables);
  for (std::uint32_t i = threadIdx.x; i < sizeof(memory.tables) / 4; i += Band::threads) to[i] = from[i];
  for (std::uint32_t i = threadIdx.x; i < window_words; i += Band::threads) memory.window[i] = 0;
  if (threadIdx.x == 0) {
    memory.carried = 0;
    memory.stuffed = 0;
    memory.pending.band = PendingBand::none;
    memory.pending.before = 0;
    memory.sources[0] = source_of(task, blockIdx.x);
  }
}

/// For `Band::threads` threads, at most as many blocks as tiles, and shared memory for Band::Memory.
template <class Band>
__device__ __forceinline__ void encode_tiles(const EncodeTask& task) {
  auto& memory = *reinterpret_cast<typename Band::Memory*>(block_memory());
  const std::uint32_t thread = threadIdx.x;
  prepare_block<Band>(memory, task);
  __syncthreads();
  typename Band::Pixels pixels;
  Band::fetch(thread, memory.sources[0], task.grid, 0, pixels);
  std::uint32_t turn = 0;
  for (std::uint32_t tile = blockIdx.x; tile < task.tile_count; tile = memory.sources[turn].number) {
    if (thread == 0) find_next_tile(memory, task, turn);
    if (thread < kept_dc) memory.dc[thread] = 0;
    std::uint32_t bits_before = 0;  // that the last band left
    for (std::uint32_t band = 0; band < task.grid.bands; ++band) {
      const bool last = band + 1 == task.grid.bands;
      if constexpr (Band::colour) {
        Band::convert(thread, memory, pixels);
        __syncthreads();
      }
      const WordPlace end = Band::quantise(thread, memory, pixels);
      __syncthreads();
      // The next band's pixels are under way while this one is coded.
      Band::fetch(thread, memory.sources[last ? turn ^ 1U : turn], task.grid, last ? 0 : band + 1, pixels);
      if (thread == 0) {
        finish_band(memory, task);
        memory.window[0] = memory.carried;
      }
      const std::uint32_t length = Band::code(thread, memory, task.grid, band, end);
      const std::uint32_t sum = sum_up_to_lane(length);
      Band::keep_sum(thread, memory, sum);
      __syncthreads();
      std::uint32_t total = 0;
      const std::uint32_t position = bits_before + Band::position(thread, memory, sum - length, total);
      const BandExtent extent(bits_before + total, last);
      if (thread == 0) begin_band(memory, task, tile, band, extent);
      Band::keep_dc(thread, memory);
      std::uint32_t stuffed = 0;
      for (std::uint32_t first_word = 0; first_word < extent.end(); first_word += window_words) {
        if (first_word > 0) __syncthreads();
        if (thread == 0) Band::fill_last_byte(memory, extent, first_word);
        Band::place(thread, memory, position, length, first_word);
        __syncthreads();
        stuffed += Band::store(thread, memory, task.scratch, extent, first_word);
      }
      if (thread == 0 && !extent.part) memory.carried = 0;
      stuffed = sum_of_lanes(stuffed);
      if (thread % 32 == 0 && stuffed > 0) atomicAdd(&memory.stuffed, stuffed);
      bits_before = extent.part ? extent.bits % 32 : 0;
    }
    turn ^= 1U;
  }
  __syncthreads();
  if (thread == 0) finish_band(memory, task);
}

}  // namespace
}  // namespace slidestream::cuda
