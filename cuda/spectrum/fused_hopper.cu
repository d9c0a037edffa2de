#include "cuda/spectrum/fused_hopper.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

int prepare_hopper() {
  for (const auto kernel : {fused_hopper<1>, fused_hopper<2>, fused_hopper<1, true>}) {
    SLIDESTREAM_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, HopperShape::shared_bytes));
  }
  return resident_teams();
}

void launch_hopper(const FusedTask& task, int teams, cudaStream_t stream) {
  const std::size_t bytes = sizeof(HopperShared) + sizeof(unsigned) * static_cast<std::size_t>(counter_words(task));
  const auto kernel = task.more.any() ? fused_hopper<1, true> : task.copies == 1 ? fused_hopper<1> : fused_hopper<2>;
  kernel<<<blocks_for(task, teams), HopperShape::threads, bytes, stream>>>(task);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

const FusedKernel& fused_hopper_kernel() {
  static const FusedKernel kernel = {"hopper", hopper_histogram_bytes, prepare_hopper, launch_hopper};
  return kernel;
}

}  // namespace slidestream::cuda
