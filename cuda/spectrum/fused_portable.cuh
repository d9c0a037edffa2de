#pragma once

#include "cuda/spectrum/fused_kernel.cuh"

/// \file
/// The fused kernel for every device from compute capability 8.0 up: 99 KB of shared memory a thread block, no
/// registers to hand over. All threads transform a strip's rows, then its columns.

namespace slidestream::cuda {

namespace {

struct PortableShape {
  static constexpr int threads = column_threads;
  static constexpr int row_groups = threads / row_lanes;
  static constexpr int rounds = pairs / row_groups;
  static constexpr int shared_bytes = 99 * 1024;  ///< compute capability 8.6 and 8.9 have no more
};

struct PortableShared {
  RowBuffer rows;
  NarrowExchange exchanges[column_groups];
  float2 roots[side];
};

constexpr int portable_histogram_bytes = PortableShape::shared_bytes - static_cast<int>(sizeof(PortableShared));

template <int parity>
__device__ __forceinline__ void transform_rows(const float* strip, std::int64_t pitch, PortableShared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % row_lanes;
  const int group = static_cast<int>(threadIdx.x) / row_lanes;
  const RowTwiddles twiddles(shared.roots, 2 * lane + parity);
#pragma unroll 1
  for (int round = 0; round < PortableShape::rounds; ++round) {
    // Neighbouring groups write rows that differ by 8, whose places lie in different banks.
    const int row = PortableShape::row_groups * round + (group & 16) + (group % 16) / 2 + 8 * (group % 2);
    const float* const upper = strip + row * pitch;
    RowInputs in = fold_pair<parity>(reinterpret_cast<const float2*>(upper) + lane,
                                     reinterpret_cast<const float2*>(upper + pairs * pitch) + lane);
    transform_pair<parity>(in, shared.rows.at[row], row % 16, lane, twiddles);
  }
}

template <int copies, bool more = false>
__global__ void __launch_bounds__(PortableShape::threads, 1) fused_portable(const __grid_constant__ FusedTask task) {
  unsigned char* const memory = block_memory();
  PortableShared& shared = *reinterpret_cast<PortableShared*>(memory);
  unsigned* const counts = reinterpret_cast<unsigned*>(memory + sizeof(PortableShared));
  clear_counts<PortableShape::threads, copies, more>(counts, task);
  shared.roots[threadIdx.x] = root256(static_cast<int>(threadIdx.x));
  __syncthreads();

  ColumnWorker<NarrowExchange, copies, more> worker(task, counts, shared.exchanges, static_cast<int>(threadIdx.x),
                                                    block_parity(), shared.roots);
  for (Walk walk(task); !walk.done(); walk.next()) {
    if (block_parity() == 0) {
      transform_rows<0>(walk.pixels(task), task.pitch, shared);
    } else {
      transform_rows<1>(walk.pixels(task), task.pitch, shared);
    }
    __syncthreads();
    worker.run(task, shared.rows, walk.window(), [] {});
    __syncthreads();
  }
  merge_counts<PortableShape::threads, copies, more>(counts, task);
}

}  // namespace

}  // namespace slidestream::cuda
