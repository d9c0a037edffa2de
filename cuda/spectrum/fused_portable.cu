#include "cuda/spectrum/fused_portable.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

int prepare_portable() {
  for (const auto kernel : {fused_portable<1>, fused_portable<2>, fused_portable<1, true>}) {
    SLIDESTREAM_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, PortableShape::shared_bytes));
  }
  return resident_teams();
}

void launch_portable(const FusedTask& task, int teams, cudaStream_t stream) {
  const std::size_t bytes = sizeof(PortableShared) + sizeof(unsigned) * static_cast<std::size_t>(counter_words(task));
  const auto kernel = task.more.any()    ? fused_portable<1, true>
                      : task.copies == 1 ? fused_portable<1>
                                         : fused_portable<2>;
  kernel<<<blocks_for(task, teams), PortableShape::threads, bytes, stream>>>(task);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

const FusedKernel& fused_portable_kernel() {
  static const FusedKernel kernel = {"portable", portable_histogram_bytes, prepare_portable, launch_portable};
  return kernel;
}

}  // namespace slidestream::cuda
