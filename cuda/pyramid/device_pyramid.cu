#include "cuda/pyramid/device_pyramid.hpp"

#include <algorithm>

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr std::int64_t most_blocks_down = 65535;

/// A thread some columns; blocks take every `gridDim.y`-th row.
template <class Above, class Sum, int channels>
__global__ void __launch_bounds__(threads) reduce(const __grid_constant__ ReduceTask task, bool aligned) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * threads + threadIdx.x) * columns_together;
  if (column >= task.columns) return;
  for (std::int64_t row = blockIdx.y; row < task.rows; row += gridDim.y) {
    reduce_columns<Above, Sum, channels>(task, column, row, aligned);
  }
}

void launch(const ReduceTask& task, int channels, cudaStream_t stream) {
  constexpr std::int64_t per_block = std::int64_t{threads} * columns_together;
  const dim3 grid(static_cast<unsigned>((task.columns + per_block - 1) / per_block),
                  static_cast<unsigned>(std::min(task.rows, most_blocks_down)));
  with_value_types(task.level, [&]<class Above, class Sum>() {
    if (channels == 1) {
      reduce<Above, Sum, 1><<<grid, threads, 0, stream>>>(task, is_aligned(task));
    } else {
      reduce<Above, Sum, 3><<<grid, threads, 0, stream>>>(task, is_aligned(task));
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
