#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/staging_ring.hpp"

namespace slidestream::runtime::cuda {

/// The pinned ring of one device: its memory, and the copies out of it. Thread-safe.
class Staging final : private StagingRing::Copies {
 public:
  /// Rows of host memory or of the device's: `count` of `bytes` each, `pitch` bytes apart.
  struct Rows {
    std::byte* to = nullptr;
    std::size_t pitch = 0;
    std::size_t bytes = 0;
    std::size_t count = 0;
  };

  /// On the current device, which is `device`, near a NUMA node. `copied` is told what each copy took, from the threads
  /// that use the ring. \throws CudaError, std::bad_alloc.
  Staging(std::size_t chunks, std::size_t chunk_bytes, int device, int numa_node,
          std::function<void(std::chrono::nanoseconds)> copied);
  /// Other streams that copies were put on have ended.
  ~Staging() override { finish(); }

  StagingRing& ring() noexcept { return ring_; }

  /// Puts the copy of `bytes` from byte `begin` of a chunk on a stream, and leaves the chunk to the ring. The device is
  /// the calling thread's. \throws CudaError; nothing of the chunk is copied any more then.
  void copy(StagingRing::Chunk&& chunk, std::byte* to, std::size_t begin, std::size_t bytes);
  /// The same of rows that stand one behind the other in the chunk. \param stream  null: one of the ring's
  void copy_rows(StagingRing::Chunk&& chunk, const Rows& rows, cudaStream_t stream);

  /// Has an event wait for all copies that were put on the ring's streams. \throws CudaError.
  void record(cudaEvent_t event);
  /// Waits for these copies.
  void finish() noexcept;

 private:
  struct Events {
    Event begun;
    Event ended;
  };

  bool has_ended(std::size_t chunk) override;
  void wait_for(std::size_t chunk) override;
  void tell(std::size_t chunk) noexcept;
  /// A copy engine goes from one to the other without a pause, while the next copy of a stream waits for its own.
  static constexpr std::size_t lane_count = 4;

  /// A stream, and the lock that is held while a copy and its events are put on it: they follow each other there.
  struct Lane {
    Stream stream;
    Event put;  ///< all that was put there when others asked
    std::mutex mutex;
  };

  Lane& lane_of(std::size_t chunk) noexcept { return lanes_[chunk % lane_count]; }
  /// \param stream  null: the lane's
  template <class Put>
  void put(StagingRing::Chunk&& chunk, cudaStream_t stream, const Put& put_copy);

  int device_;
  std::function<void(std::chrono::nanoseconds)> copied_;
  HostMemory memory_;
  PinnedRange pinned_;
  std::deque<Events> events_;  ///< by chunk
  std::array<Lane, lane_count> lanes_;
  StagingRing ring_;
};

}  // namespace slidestream::runtime::cuda
