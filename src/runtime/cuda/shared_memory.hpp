#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

/// \file
/// Dynamic shared memory of kernels that take more than every device gives without being asked.

namespace slidestream::runtime::cuda {

/// The most that each kernel was asked to have. What a kernel may have belongs to the kernel and not to a launch: were
/// a thread to set what its own launch needs, it could take away what another thread has just set for a larger one.
class SharedMemoryAllowance {
 public:
  /// Calls `set` with the most bytes that `kernel` was given on `device` so far, or these where they are more; one call
  /// at a time. What `set` throws at counts as not given.
  void allow(const void* kernel, int device, std::size_t bytes, const std::function<void(std::size_t)>& set);

 private:
  std::mutex mutex_;
  std::map<std::pair<const void*, int>, std::size_t> most_;
};

/// Lets blocks of `kernel` have `bytes` of dynamic shared memory on the current device, and never fewer than any call
/// before gave them.
/// \throws CudaError when the device doesn't have as many.
void allow_shared_memory(const void* kernel, std::size_t bytes);

template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), std::size_t bytes) {
  allow_shared_memory(reinterpret_cast<const void*>(kernel), bytes);
}

}  // namespace slidestream::runtime::cuda
