#include "runtime/cuda/shared_memory.hpp"

#include <algorithm>

#include "runtime/cuda/check.hpp"

namespace slidestream::runtime::cuda {

void SharedMemoryAllowance::allow(const void* kernel, int device, std::size_t bytes,
                                  const std::function<void(std::size_t)>& set) {
  const std::scoped_lock lock(mutex_);
  std::size_t& most = most_[{kernel, device}];
  set(std::max(most, bytes));
  most = std::max(most, bytes);
}

void allow_shared_memory(const void* kernel, std::size_t bytes) {
  static SharedMemoryAllowance allowance;
  int device = 0;
  SLIDESTREAM_CUDA(cudaGetDevice(&device));
  allowance.allow(kernel, device, bytes, [kernel](std::size_t most) {
    SLIDESTREAM_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)));
  });
}

}  // namespace slidestream::runtime::cuda
