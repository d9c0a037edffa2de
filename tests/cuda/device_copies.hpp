#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/cuda/resources.hpp"

namespace slidestream::test {

/// A copy of the values in the current device's memory.
template <class T>
runtime::cuda::DeviceMemory to_device(const std::vector<T>& values) {
  runtime::cuda::DeviceMemory memory(values.size() * sizeof(T));
  runtime::cuda::copy_to_device(memory.bytes().data(), values.data(), values.size() * sizeof(T));
  return memory;
}

/// Memory that is there even where no bytes are wanted.
inline runtime::cuda::DeviceMemory some_memory(std::size_t bytes) {
  return runtime::cuda::DeviceMemory(std::max<std::size_t>(bytes, 256));
}

}  // namespace slidestream::test
