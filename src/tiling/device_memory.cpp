#include "tiling/device_memory.hpp"

#include <algorithm>
#include <optional>
#include <slidestream/error.hpp>
#include <utility>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"

namespace slidestream {

using runtime::cuda::DeviceScope;

struct DeviceBatchMemory::Block {
  explicit Block(std::size_t bytes) : memory(bytes) {}

  runtime::cuda::DeviceMemory memory;
  /// Points on streams behind which those who had it don't use it any more: the first `recorded`.
  std::vector<std::unique_ptr<runtime::cuda::Event>> events;
  std::size_t recorded = 0;
};

DeviceBatchMemory::BlockOwner DeviceBatchMemory::make_block() const {
  const DeviceScope scope(device_);
  // What a child has of its parent's device isn't its own to free.
  return {new Block(bytes_), [process = process_, device = device_](Block* block) noexcept {
            if (process != ::getpid()) return;
            std::optional<DeviceScope> inside;
            try {
              inside.emplace(device);
            } catch (const CudaError&) {
              // The device, or the driver, is gone, and the memory with it.
            }
            delete block;
          }};
}

void DeviceBatchMemory::keep(std::size_t most) {
  std::vector<BlockOwner> superfluous;
  const std::lock_guard lock(mutex_);
  most_kept_ = most;
  free_.reserve(most);
  while (free_.size() > most) {
    superfluous.push_back(std::move(free_.back()));
    free_.pop_back();
  }
}

std::shared_ptr<DeviceBatchMemory::Lease> DeviceBatchMemory::take() {
  BlockOwner block;
  {
    const std::lock_guard lock(mutex_);
    free_.reserve(most_kept_);
    // The one that was given back first: those who had it are the likeliest to be done with it.
    if (!free_.empty()) {
      block = std::move(free_.front());
      free_.erase(free_.begin());
    }
  }
  if (block == nullptr) block = make_block();
  return std::make_shared<Lease>(shared_from_this(), std::move(block));
}

DeviceBatchMemory::Lease::Lease(std::shared_ptr<DeviceBatchMemory> from, BlockOwner block)
    : device_(from->device_), process_(from->process_), from_(std::move(from)), block_(std::move(block)) {}

std::uint8_t* DeviceBatchMemory::Lease::data() const noexcept {
  return reinterpret_cast<std::uint8_t*>(block_->memory.bytes().data());
}

void DeviceBatchMemory::Lease::used_on(void* stream) {
  const auto named = static_cast<cudaStream_t>(stream);
  const std::lock_guard lock(mutex_);
  if (std::find(streams_.begin(), streams_.end(), named) == streams_.end()) streams_.push_back(named);
}

void DeviceBatchMemory::Lease::hand_back() noexcept {
  std::shared_ptr<DeviceBatchMemory> from;
  std::vector<cudaStream_t> streams;
  // A child may have the lock as a thread of its parent had it.
  if (process_ != ::getpid()) return;
  {
    const std::lock_guard lock(mutex_);
    from = std::exchange(from_, nullptr);
    streams = std::exchange(streams_, {});
  }
  if (from == nullptr) return;
  try {
    const DeviceScope scope(device_);
    streams.push_back(cudaStreamLegacy);
    block_->recorded = 0;
    for (const cudaStream_t stream : streams) {
      if (block_->recorded == block_->events.size()) {
        block_->events.push_back(std::make_unique<runtime::cuda::Event>());
      }
      SLIDESTREAM_CUDA(cudaEventRecord(block_->events[block_->recorded]->get(), stream));
      ++block_->recorded;
    }
    const std::lock_guard lock(from->mutex_);
    // There is room for all that may be kept.
    if (from->free_.size() < from->most_kept_) from->free_.push_back(block_);
  } catch (const std::exception&) {
    // Nobody can tell when it is free: it isn't used again. Freeing it waits for the device.
  }
}

void DeviceBatchMemory::Lease::copy_to_host(std::uint8_t* to, std::size_t bytes) const {
  const DeviceScope scope(device_);
  SLIDESTREAM_CUDA(cudaMemcpy(to, data(), bytes, cudaMemcpyDeviceToHost));
}

void DeviceBatchMemory::Lease::wait_for_former_users(cudaStream_t stream) const {
  for (std::size_t i = 0; i < block_->recorded; ++i) {
    SLIDESTREAM_CUDA(cudaStreamWaitEvent(stream, block_->events[i]->get(), 0));
  }
}

}  // namespace slidestream
