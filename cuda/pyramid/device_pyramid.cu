#include "cuda/pyramid/device_pyramid.hpp"

#include <algorithm>

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr std::int64_t most_blocks_down = 65535;

/// A thread a sample; blocks take every `gridDim.y`-th row.
template <class Above, class Sum, int channels>
__global__ void __launch_bounds__(threads) reduce(const __grid_constant__ ReduceTask task) {
  const std::int64_t at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (at >= task.columns * channels) return;
  for (std::int64_t row = blockIdx.y; row < task.rows; row += gridDim.y) {
    reduce_sample<Above, Sum, channels>(task, at, row);
  }
}

void launch(const ReduceTask& task, int channels, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((task.columns * channels + threads - 1) / threads),
                  static_cast<unsigned>(std::min(task.rows, most_blocks_down)));
  with_value_types(task.level, [&]<class Above, class Sum>() {
    if (channels == 1) {
      reduce<Above, Sum, 1><<<grid, threads, 0, stream>>>(task);
    } else {
      reduce<Above, Sum, 3><<<grid, threads, 0, stream>>>(task);
    }
  });
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

void DevicePyramid::enqueue(const ConstPixelView<MemorySpace::device>& band,
                            std::span<const PixelView<MemorySpace::device>> levels, cudaStream_t stream) {
  for (const BandWork::Step& step : reducer_.add(band, levels).steps) {
    if (step.reduce.rows > 0) launch(step.reduce, channels_, stream);
    if (step.carry.bytes > 0) {
      SLIDESTREAM_CUDA(
          cudaMemcpyAsync(step.carry.to, step.carry.from, step.carry.bytes, cudaMemcpyDeviceToDevice, stream));
    }
  }
}

}  // namespace slidestream::cuda
