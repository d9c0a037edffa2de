#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

/// \file
/// Owners of what the CUDA runtime hands out. Everything is taken through them, so that their counts prove that a
/// running pipeline takes nothing.

namespace slidestream::runtime::cuda {

/// How often this process has taken something from the CUDA runtime since it started.
struct ResourceCounts {
  std::atomic<std::uint64_t> device_allocations{0};
  std::atomic<std::uint64_t> pinned_ranges{0};
  std::atomic<std::uint64_t> streams{0};
  std::atomic<std::uint64_t> events{0};

  std::uint64_t total() const noexcept { return device_allocations + pinned_ranges + streams + events; }
};
ResourceCounts& resource_counts() noexcept;

/// A block of memory of the device that was current when it was made.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// \throws CudaError when the device has no such block free.
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Copies host memory, which needn't be pinned, to the current device, and waits until it is there. `cudaMemcpy` alone
/// may return before, when it has only put the bytes aside, and a `Stream` doesn't wait for it. \throws CudaError
void copy_to_device(void* to, const void* from, std::size_t bytes);

/// Hands out parts of one block, one after the other: all device memory of a run is taken in one piece.
class DeviceArena {
 public:
  static constexpr std::size_t alignment = 512;
  static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  DeviceArena() = default;
  explicit DeviceArena(std::size_t bytes) : memory_(bytes) {}
  /// \throws std::bad_alloc when the rest is too small: whoever sized the arena forgot something.
  std::span<std::byte> take(std::size_t bytes);

 private:
  DeviceMemory memory_;
  std::size_t used_ = 0;
};

/// Host memory that copies to and from every device need not stage: pinned while it lives.
class PinnedRange {
 public:
  /// Threads that take pages from the system, if the caller doesn't say how many: half of the processors, and no more
  /// than have the memory's full speed.
  static std::size_t usual_threads() noexcept;
  /// Has the system's pages taken first, by so many threads. \throws CudaError when it doesn't let so much be pinned.
  explicit PinnedRange(std::span<std::byte> memory, std::size_t threads = usual_threads());
  ~PinnedRange();
  PinnedRange(PinnedRange&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  PinnedRange& operator=(PinnedRange&&) = delete;

 private:
  std::byte* data_ = nullptr;
};

/// A stream of the current device that doesn't wait for the default one.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const noexcept { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// An event of the current device, with a time stamp; waiting for it on the host sleeps.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace slidestream::runtime::cuda
