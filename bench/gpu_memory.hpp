#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "runtime/cuda/check.hpp"

/// \file
/// Memory and times of a GPU, for the benchmarks of its decoders.

namespace slidestream::bench {

struct DeviceFree {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
struct HostFree {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
using DeviceBytes = std::unique_ptr<std::byte, DeviceFree>;
using PinnedBytes = std::unique_ptr<std::byte, HostFree>;

/// \throws CudaError
inline DeviceBytes allocate_device(std::size_t bytes) {
  void* memory = nullptr;
  SLIDESTREAM_CUDA(cudaMalloc(&memory, bytes));
  return DeviceBytes(static_cast<std::byte*>(memory));
}
/// \throws CudaError
inline PinnedBytes allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  SLIDESTREAM_CUDA(cudaMallocHost(&memory, bytes));
  return PinnedBytes(static_cast<std::byte*>(memory));
}

/// Between two events that the device has passed.
inline double milliseconds(cudaEvent_t from, cudaEvent_t to) {
  float elapsed = 0;
  SLIDESTREAM_CUDA(cudaEventElapsedTime(&elapsed, from, to));
  return elapsed;
}

}  // namespace slidestream::bench
