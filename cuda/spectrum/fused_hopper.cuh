#pragma once

#include <cstddef>

#include "cuda/spectrum/fused_kernel.cuh"

/// \file
/// The fused kernel for compute capability 9.x: thread blocks have 227 KB of shared memory, and warps can hand
/// registers to each other. Four warps transform rows, eight transform columns and count, each at its own pace, a strip
/// apart.

namespace slidestream::cuda {

namespace {

struct HopperShape {
  static constexpr int row_threads = 128;
  static constexpr int threads = row_threads + column_threads;
  static constexpr int row_groups = row_threads / row_lanes;
  static constexpr int rounds = pairs / row_groups;
  static constexpr int buffers = 2;
  // Registers per thread: 128 x 72 + 256 x 216 = 64,512 of a multiprocessor's 65,536. Columns need theirs for the last
  // strip.
  static constexpr int row_registers = 72;
  static constexpr int column_registers = 216;
  static constexpr int shared_bytes = 227 * 1024;
};

/// One pair's pixels, on their way from device memory. Two groups of 8 lanes read at a time, from different banks.
struct StagedPair {
  float upper[side];
  float lower[side];
  float padding[16];
};

/// Where the warps that transform rows and those that transform columns meet: some arrive and go on, the others wait
/// for them, all together. Numbers of the hardware's barriers; 0 is __syncthreads'.
enum class MeetingPoint { full = 1, empty = full + HopperShape::buffers };

__device__ __forceinline__ void arrive_at(MeetingPoint point, unsigned buffer) {
  arrive_at_barrier<HopperShape::threads>(static_cast<unsigned>(point) + buffer);
}
__device__ __forceinline__ void wait_at(MeetingPoint point, unsigned buffer) {
  wait_at_barrier<HopperShape::threads>(static_cast<unsigned>(point) + buffer);
}

struct HopperShared {
  RowBuffer rows[HopperShape::buffers];
  WideExchange exchanges[column_groups];
  StagedPair staged[HopperShape::row_groups];
  float2 roots[side];
  int window[HopperShape::buffers];  ///< that the strip in the buffer completes; no_window; no_more: there is no strip
};

constexpr int hopper_histogram_bytes = HopperShape::shared_bytes - static_cast<int>(sizeof(HopperShared));

/// Starts copying this lane's 16-byte pieces of a row: every eighth. The numbers are bytes.
template <int... piece>
__device__ __forceinline__ void stage_row(unsigned to, const std::byte* from, std::integer_sequence<int, piece...>) {
  (..., copy_async<piece * 16 * row_lanes>(to, from));
}

__device__ __forceinline__ void wait_for_staged() {
  wait_for_copies();
  __syncwarp();
}

/// The warps that transform rows. Pixels are loaded one pair ahead.
template <int parity>
__device__ __forceinline__ void transform_rows(const FusedTask& task, HopperShared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % row_lanes;
  const int group = static_cast<int>(threadIdx.x) / row_lanes;
  // Neighbouring groups write rows that differ by 8, whose places lie in different banks.
  const int first_row = group / 2 + 8 * (group % 2);
  const RowTwiddles twiddles(shared.roots, 2 * lane + parity);
  StagedPair& staged = shared.staged[group];
  const float2* const upper = reinterpret_cast<const float2*>(staged.upper) + lane;
  const float2* const lower = reinterpret_cast<const float2*>(staged.lower) + lane;

  Walk walk(task);
  constexpr auto pieces = std::make_integer_sequence<int, side / (4 * row_lanes)>();
  const std::int64_t pitch_bytes = task.pitch * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t lane_offset = first_row * pitch_bytes + 16 * lane;
  const auto stage = [&](int round) {
    const std::byte* const strip = reinterpret_cast<const std::byte*>(walk.pixels(task));
    const std::byte* const from = strip + HopperShape::row_groups * round * pitch_bytes + lane_offset;
    stage_row(shared_address(staged.upper) + 16 * lane, from, pieces);
    stage_row(shared_address(staged.lower) + 16 * lane, from + pairs * pitch_bytes, pieces);
  };
  if (!walk.done()) stage(0);
  unsigned strips = 0;
  for (bool more = !walk.done(); more; ++strips) {
    const unsigned buffer = strips % HopperShape::buffers;
    const int window = walk.window();
#pragma unroll 1
    for (int round = 0; round < HopperShape::rounds; ++round) {
      wait_for_staged();
      RowInputs in = fold_pair<parity>(upper, lower);
      __syncwarp();
      if (round + 1 < HopperShape::rounds) {
        stage(round + 1);
      } else {
        walk.next();
        more = !walk.done();
        if (more) stage(0);
      }
      if (round == 0) {
        wait_at(MeetingPoint::empty, buffer);
        if (threadIdx.x == 0) shared.window[buffer] = window;
      }
      static_assert(HopperShape::row_groups == 16);
      transform_pair<parity>(in, shared.rows[buffer].at[HopperShape::row_groups * round + first_row], first_row, lane,
                             twiddles);
    }
    arrive_at(MeetingPoint::full, buffer);
  }
  const unsigned buffer = strips % HopperShape::buffers;
  wait_at(MeetingPoint::empty, buffer);
  if (threadIdx.x == 0) shared.window[buffer] = no_more;
  arrive_at(MeetingPoint::full, buffer);
  wait_at(MeetingPoint::empty, (strips + 1) % HopperShape::buffers);  // the last that is on its way
}

template <int copies, bool more>
__device__ __forceinline__ void transform_columns(const FusedTask& task, HopperShared& shared, const unsigned* counts) {
  ColumnWorker<WideExchange, copies, more> worker(task, counts, shared.exchanges,
                                                  static_cast<int>(threadIdx.x) - HopperShape::row_threads,
                                                  block_parity(), shared.roots);
  static_assert(HopperShape::buffers == 2);
  for (unsigned buffer = 0; buffer < HopperShape::buffers; ++buffer) arrive_at(MeetingPoint::empty, buffer);
  for (unsigned buffer = 0;; buffer ^= 1) {
    wait_at(MeetingPoint::full, buffer);
    const int window = shared.window[buffer];
    if (window == no_more) break;
    worker.run(task, shared.rows[buffer], window, [&] { arrive_at(MeetingPoint::empty, buffer); });
  }
}

template <int copies, bool more = false>
__global__ void __launch_bounds__(HopperShape::threads, 1) fused_hopper(const __grid_constant__ FusedTask task) {
  unsigned char* const memory = block_memory();
  HopperShared& shared = *reinterpret_cast<HopperShared*>(memory);
  unsigned* const counts = reinterpret_cast<unsigned*>(memory + sizeof(HopperShared));
  clear_counts<HopperShape::threads, copies, more>(counts, task);
  if (threadIdx.x < side) shared.roots[threadIdx.x] = root256(static_cast<int>(threadIdx.x));
  __syncthreads();

  if (threadIdx.x < HopperShape::row_threads) {
    release_registers<HopperShape::row_registers>();
    if (block_parity() == 0) {
      transform_rows<0>(task, shared);
    } else {
      transform_rows<1>(task, shared);
    }
  } else {
    claim_registers<HopperShape::column_registers>();
    transform_columns<copies, more>(task, shared, counts);
  }
  __syncthreads();
  merge_counts<HopperShape::threads, copies, more>(counts, task);
}

}  // namespace

}  // namespace slidestream::cuda
