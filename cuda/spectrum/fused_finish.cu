#include "cuda/spectrum/fused_windows.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

constexpr int fold_threads = 256;
constexpr int scale_threads = 256;

/// One thread block. Many of the task's bins may fall into the first and the last.
__global__ void __launch_bounds__(fold_threads)
    fold_bins(std::uint64_t* histogram, std::uint64_t* clipped, const std::uint64_t* counts, int count, int first_bin,
              int bins) {
  for (int bin = threadIdx.x; bin < bins; bin += fold_threads) histogram[bin] = 0;
  if (threadIdx.x == 0) *clipped = 0;
  __syncthreads();
  auto* const cells = reinterpret_cast<unsigned long long*>(histogram);
  for (int i = threadIdx.x; i < count; i += fold_threads) {
    const unsigned long long values = counts[i];
    if (values == 0) continue;
    const int bin = first_bin + i;
    if (bin < 0 || bin >= bins) atomicAdd(reinterpret_cast<unsigned long long*>(clipped), values);
    atomicAdd(cells + min(max(bin, 0), bins - 1), values);
  }
}

__global__ void __launch_bounds__(scale_threads)
    scale_moments(double* moments, const std::int64_t* sums, std::int64_t windows) {
  const std::int64_t window = static_cast<std::int64_t>(blockIdx.x) * scale_threads + threadIdx.x;
  if (window >= windows) return;
  // Every value of the half spectrum stands for two.
  constexpr double value_scale = 2.0 * decibels_per_octave / (1 << fused_sum_bits);
  constexpr double square_scale = 2.0 * decibels_per_octave * decibels_per_octave / (1 << fused_square_bits);
  moments[2 * window] = value_scale * static_cast<double>(sums[2 * window]);
  moments[2 * window + 1] = square_scale * static_cast<double>(sums[2 * window + 1]);
}

}  // namespace

void fold_histogram(std::uint64_t* histogram, std::uint64_t* clipped, const std::uint64_t* counts,
                    const FusedTask& task, int first_bin, int bins, cudaStream_t stream) {
  fold_bins<<<1, fold_threads, 0, stream>>>(histogram, clipped, counts, task.bins, first_bin, bins);
  SLIDESTREAM_CUDA_LAUNCHED();
}

void finish_fused(const DeviceSums& sums, const FusedTask& task, int first_bin, int bins, cudaStream_t stream) {
  fold_histogram(sums.histogram, sums.clipped, task.histogram, task, first_bin, bins, stream);
  const std::int64_t windows = static_cast<std::int64_t>(task.columns) * task.rows;
  const unsigned blocks = static_cast<unsigned>((windows + scale_threads - 1) / scale_threads);
  scale_moments<<<blocks, scale_threads, 0, stream>>>(sums.moments, task.moments, windows);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
