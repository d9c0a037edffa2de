#pragma once

#include "cuda/device/primitives.cuh"
#include "cuda/spectrum/value.cuh"
#include "spectrum/smoothing.hpp"

/// \file
/// The kernel that sums spectra up over rings.

namespace slidestream::cuda {

namespace {

struct RingShape {
  static constexpr int threads = 512;
  static constexpr int most_blocks = 1024;
  /// Sums in shared memory have 32 bits: a value is cut into pieces of 12 bits, and what is above. A ring of a window
  /// has less than 2^15 coefficients.
  static constexpr int pieces = 3;
  static constexpr int piece_bits = 12;
};

struct RingTask {
  const float2* spectra;
  int window;
  int windows;
  int rings;
  float scale;
};

/// |k| rounded to a whole number, from its square. A root never lies half-way; what float32 can't tell there the
/// integers do.
__device__ int ring_of_square(int square) {
  const int ring = __float2int_rn(__fsqrt_rn(static_cast<float>(square)));
  if (square > ring * ring + ring) return ring + 1;
  return ring > 0 && square <= ring * ring - ring ? ring - 1 : ring;
}

/// A block takes one window after the other.
template <ValueKind kind>
__global__ void __launch_bounds__(RingShape::threads) add_to_rings(unsigned long long* sums, RingTask task) {
  unsigned* const cells = reinterpret_cast<unsigned*>(block_memory());  // RingShape::pieces a ring
  const int columns = task.window / 2 + 1;
  const unsigned total = static_cast<unsigned>(task.window) * static_cast<unsigned>(columns);
  constexpr long long mask = (1 << RingShape::piece_bits) - 1;
  for (int window = blockIdx.x; window < task.windows; window += gridDim.x) {
    for (int i = threadIdx.x; i < RingShape::pieces * task.rings; i += RingShape::threads) cells[i] = 0;
    __syncthreads();
    const float2* const from = task.spectra + static_cast<std::size_t>(window) * total;
    for (unsigned at = threadIdx.x; at < total; at += RingShape::threads) {
      const int row = static_cast<int>(at / static_cast<unsigned>(columns));
      const int kx = static_cast<int>(at) - row * columns;
      const int ky = min(row, task.window - row);
      const int ring = ring_of_square(kx * kx + ky * ky);
      if (ring >= task.rings) continue;
      float2 f = from[at];
      if (at == 0) f.x += static_cast<float>(luminance_offset) * task.window * task.window;
      long long value = __float2ll_rn(value_of<kind>(f) * task.scale);
      // Columns 0 and N/2 have no mirror image on the other side: they count once, all others twice.
      if (kx != 0 && kx != columns - 1) value *= 2;
      unsigned* const cell = cells + RingShape::pieces * ring;
      atomicAdd(cell, static_cast<unsigned>(value & mask));
      atomicAdd(cell + 1, static_cast<unsigned>(value >> RingShape::piece_bits & mask));
      atomicAdd(cell + 2, static_cast<unsigned>(value >> (2 * RingShape::piece_bits)));
    }
    __syncthreads();
    for (int ring = threadIdx.x; ring < task.rings; ring += RingShape::threads) {
      const unsigned* const cell = cells + RingShape::pieces * ring;
      const long long sum = static_cast<long long>(cell[0]) +
                            (static_cast<long long>(cell[1]) << RingShape::piece_bits) +
                            static_cast<long long>(static_cast<int>(cell[2])) * (1LL << (2 * RingShape::piece_bits));
      atomicAdd(sums + ring, static_cast<unsigned long long>(sum));
    }
    __syncthreads();
  }
}

}  // namespace

}  // namespace slidestream::cuda
