#pragma once

#include "cuda/jpeg2000/arena.cuh"
#include "cuda/jpeg2000/block_bits.hpp"
#include "cuda/jpeg2000/device_batch.hpp"

/// \file
/// From packets to code-blocks that are ready to decode. One thread reads the packet headers of a tile. Code-blocks are
/// then sorted by length, so that neighbouring threads have about equal work. Last, the bits of each code-block
/// are joined by one thread.

namespace slidestream::cuda {
namespace {

struct PacketShape {
  static constexpr unsigned parse_threads = 64;
  static constexpr unsigned sort_threads = 256;
  static constexpr unsigned join_threads = 128;
  static constexpr unsigned join_blocks_per_multiprocessor = 16;
};

/// The bin of a code-block with so many bytes: the longest code-blocks are in the first bins.
__device__ __forceinline__ std::uint32_t bin_of(std::uint32_t bytes) {
  return length_bins - 1 - smaller(bytes / 4, length_bins - 1);
}

struct BandBlock {
  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t orientation;
  std::uint32_t style;
};

/// Calls `visit(block, size)` for every `step`-th code-block of a tile that has something to decode, from `first` on.
template <class Visit>
__device__ __forceinline__ void for_used_blocks(const Jpeg2000Coding& coding, Jpeg2000Block* blocks,
                                                std::uint32_t first, std::uint32_t step, const Visit& visit) {
  std::uint32_t band_number = 0;
  for (std::uint32_t i = first; i < coding.blocks; i += step) {
    // The band of the block: the last that begins at it or before, of those that have any.
    while (band_number + 1U < coding.bands_used && coding.bands[band_number + 1].first_block <= i) ++band_number;
    if (blocks[i].passes == 0) continue;
    const Jpeg2000Band band = coding.bands[band_number];
    const std::uint32_t at = i - band.first_block;
    const std::uint32_t x = at % band.blocks_across << band.block_width_log;
    const std::uint32_t y = at / band.blocks_across << band.block_height_log;
    visit(blocks[i], i,
          BandBlock{smaller(1U << band.block_width_log, band.width - x),
                    smaller(1U << band.block_height_log, band.height - y), band.orientation, band.block_style});
  }
}

/// A thread per tile: finds its code-blocks' bytes, takes room for their bits and planes, and counts them by bin.
__global__ void __launch_bounds__(PacketShape::parse_threads) parse_packets(const Jpeg2000DeviceBatch batch) {
  const std::uint32_t number = blockIdx.x * PacketShape::parse_threads + threadIdx.x;
  if (number >= batch.tile_count) return;
  const Jpeg2000DeviceTile tile = batch.tiles[number];
  const Jpeg2000Coding& coding = batch.codings[tile.coding];
  Jpeg2000Block* const blocks = batch.blocks + tile.first_block;
  const std::uint64_t state = std::uint64_t{number / 32} * (batch.state_words * 32) + number % 32;
  Jpeg2000Reason reason = read_packets(batch.compressed + tile.offset, tile.offset, batch.parts + tile.first_part,
                                       tile.parts, coding, {batch.state + state, 32, coding.nodes, coding.all_blocks},
                                       blocks, {batch.pieces, &batch.counters->pieces, batch.piece_capacity});
  if (reason == Jpeg2000Reason::none) {
    std::uint32_t stream_total = 0;
    std::uint32_t plane_total = 0;
    for_used_blocks(coding, blocks, 0, 1, [&](const Jpeg2000Block& block, std::uint32_t, const BandBlock& size) {
      stream_total += stream_words(block.length);
      plane_total += block_words(size.width, size.height, block.coded_planes);
    });
    std::uint32_t stream = atomicAdd(&batch.counters->stream_words, stream_total);
    const unsigned long long taken = atomicAdd(&batch.counters->plane_words, std::uint64_t{plane_total});
    if (stream + stream_total > batch.stream_capacity || taken + plane_total > batch.plane_capacity) {
      reason = Jpeg2000Reason::out_of_memory;
    } else {
      auto planes = static_cast<std::uint32_t>(taken);
      for_used_blocks(coding, blocks, 0, 1, [&](Jpeg2000Block& block, std::uint32_t, const BandBlock& size) {
        block.stream = stream;
        block.planes = planes;
        block.tile = number;
        stream += stream_words(block.length);
        planes += block_words(size.width, size.height, block.coded_planes);
        atomicAdd(&batch.counters->bins[bin_of(block.length)], 1U);
      });
    }
  }
  batch.verdicts[number] = static_cast<std::uint32_t>(reason);
}

/// Turns the counts of the bins into the places where bins begin: each is the sum of the counts before it.
__global__ void __launch_bounds__(length_bins) scan_bins(const Jpeg2000DeviceBatch batch) {
  auto* const sums = reinterpret_cast<std::uint32_t*>(block_memory());
  const std::uint32_t mine = batch.counters->bins[threadIdx.x];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (std::uint32_t distance = 1; distance < length_bins; distance *= 2) {
    const std::uint32_t before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  batch.counters->bins[threadIdx.x] = sums[threadIdx.x] - mine;
  if (threadIdx.x == length_bins - 1) batch.counters->jobs = sums[threadIdx.x];
}

/// A warp per tile: puts its code-blocks into the order by length, and zeroes those of their planes that begin as
/// zeros.
__global__ void __launch_bounds__(PacketShape::sort_threads) sort_blocks(const Jpeg2000DeviceBatch batch) {
  const std::uint32_t number = blockIdx.x * (PacketShape::sort_threads / 32) + threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x % 32;
  if (number >= batch.tile_count || batch.verdicts[number] != 0) return;
  const Jpeg2000DeviceTile tile = batch.tiles[number];
  const Jpeg2000Coding& coding = batch.codings[tile.coding];
  Jpeg2000Block* const blocks = batch.blocks + tile.first_block;
  for_used_blocks(coding, blocks, lane, 32, [&](const Jpeg2000Block& block, std::uint32_t i, const BandBlock& size) {
    const std::uint32_t place = atomicAdd(&batch.counters->bins[bin_of(block.length)], 1U);
    batch.jobs[place] = {block.stream, bit_words(block.length) - 1, block.planes,
                         block_shape(size.width, size.height, size.orientation, block.passes, size.style)};
    batch.job_blocks[place] = tile.first_block + i;
  });
  for_used_blocks(coding, blocks, 0, 1, [&](const Jpeg2000Block& block, std::uint32_t, const BandBlock& size) {
    const std::uint32_t words = plane_words(size.width, size.height);
    for (std::uint32_t i = lane; i < 2 * words; i += 32) batch.planes[block.planes + words + i] = 0;
  });
}

/// Joins the bits of code-blocks, without stuffing. Of n threads each takes every n-th code-block.
__global__ void __launch_bounds__(PacketShape::join_threads) join_blocks(const Jpeg2000DeviceBatch batch) {
  const std::uint32_t jobs = batch.counters->jobs;
  for (std::uint32_t i = blockIdx.x * PacketShape::join_threads + threadIdx.x; i < jobs;
       i += gridDim.x * PacketShape::join_threads) {
    const Jpeg2000Block& block = batch.blocks[batch.job_blocks[i]];
    if (!join_block(batch.compressed, block, batch.pieces, batch.stream + block.stream)) {
      atomicMax(batch.verdicts + block.tile, static_cast<std::uint32_t>(Jpeg2000Reason::bad_stuffing));
    }
  }
}

}  // namespace
}  // namespace slidestream::cuda
