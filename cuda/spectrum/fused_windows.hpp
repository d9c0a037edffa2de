#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/spectrum/fused_layout.hpp"
#include "cuda/spectrum/smoothing.hpp"

/// \file
/// Windows of 256 x 256 at a stride of 128, from the smoothed plane to histogram and moments in one kernel.

namespace slidestream::cuda {

/// Per-window sums are integers: sums of log2(1 + |F|) times 2^fused_sum_bits, of its square times 2^fused_square_bits,
/// over half of the spectrum (columns 0 and N/2 weigh a half).
constexpr int fused_sum_bits = 14;
constexpr int fused_square_bits = 9;

/// What is counted besides, by a build of the kernel that is slower. All zero or null: nothing.
struct FusedStatistics {
  const std::uint8_t* tissue = nullptr;       ///< of each window, 1 where it is tissue, else 0; null: they aren't split
  std::uint64_t* tissue_histogram = nullptr;  ///< as the task's, of these windows
  std::int64_t* rings = nullptr;  ///< `fused_rings` sums of values x `ring_scale`, zero before; null: they aren't made
  float ring_scale = 0.0F;        ///< values here are in powers of two
  int ring_copies = 0;            ///< of the rings' sums in shared memory, a power of two up to 16

  constexpr bool any() const { return tissue != nullptr || rings != nullptr; }
};

/// One block of windows.
struct FusedTask {
  const float* plane =
      nullptr;             ///< smoothed pixels less the offset, times 1/2; the first window's first, aligned to 16
  std::int64_t pitch = 0;  ///< floats, a multiple of 4
  int columns = 0;         ///< windows
  int rows = 0;
  float bins_per_octave = 0.0F;
  float bin_of_zero = 0.0F;            ///< the bin of 0 dB, a whole number
  int bins = 0;                        ///< all that values can fall into; the first is number 0
  int copies = 1;                      ///< of the histogram in shared memory
  std::uint64_t* histogram = nullptr;  ///< `bins` counts, zero before
  std::int64_t* moments = nullptr;     ///< per window sum and sum of squares, zero before
  FusedStatistics more;
};

/// One build of the kernel.
struct FusedKernel {
  const char* name;
  /// Shared memory that is left for histograms, in bytes.
  int histogram_bytes;
  /// Prepares the current device; returns how many teams of two thread blocks it runs at a time. Throws CudaError.
  int (*prepare)();
  /// Uses that many teams at most.
  void (*launch)(const FusedTask& task, int teams, cudaStream_t stream);
};

/// For compute capability 9.x.
const FusedKernel& fused_hopper_kernel();
/// For all devices from compute capability 8.0 up: keeps to what the smallest of them have.
const FusedKernel& fused_portable_kernel();

/// Turns a task's results into a block's: folds the bins of all values into those of the configuration, of which the
/// task's first is number `first_bin`, counts what lies outside, and scales the moments.
void finish_fused(const DeviceSums& sums, const FusedTask& task, int first_bin, int bins, cudaStream_t stream);
/// The histogram's part of that, of another one of the task's.
void fold_histogram(std::uint64_t* histogram, std::uint64_t* clipped, const std::uint64_t* counts,
                    const FusedTask& task, int first_bin, int bins, cudaStream_t stream);

}  // namespace slidestream::cuda
