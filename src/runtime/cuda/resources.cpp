#include "runtime/cuda/resources.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "runtime/cuda/check.hpp"
#include "runtime/device_full.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/machine.hpp"

namespace slidestream::runtime::cuda {

ResourceCounts& resource_counts() noexcept {
  static ResourceCounts counts;
  return counts;
}

DeviceMemory::DeviceMemory(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  const cudaError_t given = cudaMalloc(&memory, bytes);
  if (given == cudaErrorMemoryAllocation) {
    // Else the thread's next launch would be told of it.
    static_cast<void>(cudaGetLastError());
    throw DeviceFullError(std::string("CUDA: ") + cudaGetErrorString(given) + " (" + cudaGetErrorName(given) +
                          ") from cudaMalloc of " + std::to_string(bytes) + " bytes");
  }
  check(given, "cudaMalloc(&memory, bytes)", __FILE__, __LINE__);
  data_ = static_cast<std::byte*>(memory);
  ++resource_counts().device_allocations;
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) SLIDESTREAM_CUDA_NOEXCEPT(cudaFree(data_));
}

void copy_to_device(void* to, const void* from, std::size_t bytes) {
  SLIDESTREAM_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  SLIDESTREAM_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
}

std::span<std::byte> DeviceArena::take(std::size_t bytes) {
  const std::span<std::byte> all = memory_.bytes();
  if (aligned(bytes) > all.size() - used_) throw std::bad_alloc();
  const std::span<std::byte> part = all.subspan(used_, bytes);
  used_ += aligned(bytes);
  return part;
}

std::size_t PinnedRange::usual_threads() noexcept {
  constexpr int most = 8;
  return static_cast<std::size_t>(std::clamp(available_processors() / 2, 1, most));
}

PinnedRange::PinnedRange(std::span<std::byte> memory, std::size_t threads) {
  if (memory.empty()) return;
  populate(memory, threads);
  SLIDESTREAM_CUDA(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable));
  data_ = memory.data();
  ++resource_counts().pinned_ranges;
}

PinnedRange::~PinnedRange() {
  if (data_ != nullptr) SLIDESTREAM_CUDA_NOEXCEPT(cudaHostUnregister(data_));
}

Stream::Stream() {
  SLIDESTREAM_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  ++resource_counts().streams;
}

Stream::~Stream() { SLIDESTREAM_CUDA_NOEXCEPT(cudaStreamDestroy(stream_)); }

Event::Event() {
  SLIDESTREAM_CUDA(cudaEventCreateWithFlags(&event_, cudaEventBlockingSync));
  ++resource_counts().events;
}

Event::~Event() { SLIDESTREAM_CUDA_NOEXCEPT(cudaEventDestroy(event_)); }

}  // namespace slidestream::runtime::cuda
