#pragma once

#include "cuda/jpeg2000/arena.cuh"
#include "cuda/jpeg2000/device_batch.hpp"

/// \file
/// From bits to bit planes: a lane a code-block, an MQ decision a step. Lanes fetch blocks from a counter, so that all
/// have work until there is none.

namespace slidestream::cuda {
namespace {

struct BlockShape {
  static constexpr unsigned warps = 12;
  static constexpr unsigned threads = 32 * warps;
  static constexpr int steps = 2;  ///< decisions between looks at whether a lane must go on to another word or block
  static constexpr std::uint32_t shared_bytes = MqTables::bytes + warps * LaneArena::warp_bytes;
};

/// `lanes` of each warp decode. While few blocks keep all others waiting, fewer lanes in step with them are quicker.
/// `styled`: blocks may have any style.
template <bool styled>
__global__ void __launch_bounds__(BlockShape::threads, 1)
    decode_blocks(const Jpeg2000DeviceBatch batch, const std::uint32_t lanes) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  auto* const words = reinterpret_cast<std::uint32_t*>(block_memory());
  for (std::uint32_t i = threadIdx.x; i < MqTables::bytes / 4; i += BlockShape::threads) {
    words[i] = reinterpret_cast<const std::uint32_t*>(batch.tables)[i];
  }
  __syncthreads();
  const BlockArena arena;
  std::uint32_t tables = shared_address(block_memory());
  std::uint32_t base = tables + MqTables::bytes + warp * LaneArena::warp_bytes + 4 * lane;
  compute_here(tables);
  compute_here(base);
  const std::uint32_t jobs = batch.counters->jobs;
  BlockDecoder<BlockArena, styled> decoder;
  bool busy = false;
  bool more = true;
  const std::uint32_t usable = shift_right(all_lanes, 32 - lanes);
  while (true) {
    const std::uint32_t working = __ballot_sync(all_lanes, busy);
    const std::uint32_t idle = ~working & usable;
    if (idle != 0 && more) {
      const auto wanted = static_cast<std::uint32_t>(__popc(idle));
      std::uint32_t first = 0;
      if (lane == 0) first = atomicAdd(&batch.counters->next_job, wanted);
      first = __shfl_sync(all_lanes, first, 0);
      more = first + wanted < jobs;
      const std::uint32_t mine = first + static_cast<std::uint32_t>(__popc(idle & ((1U << lane) - 1)));
      if ((idle >> lane & 1U) != 0 && mine < jobs) {
        decoder.start(batch.jobs[mine], batch.stream, arena, base, tables);
        busy = true;
      }
      __syncwarp();
    } else if (working == 0) {
      break;
    }
    if (busy && !decoder.ready()) {
      if (decoder.holds()) {
        decoder.refetch(arena, batch.planes);
      } else {
        busy = decoder.advance(arena, batch.planes, tables);
      }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < BlockShape::steps; ++i) {
      if (busy && decoder.ready()) decoder.step(arena, batch.stream, tables);
      __syncwarp();
    }
  }
}

}  // namespace
}  // namespace slidestream::cuda
