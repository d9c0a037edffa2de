#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace slidestream::runtime {

/// A few equal chunks of memory through which bytes pass on their way to a device. A thread acquires a chunk, fills it,
/// has it copied, and leaves it to the ring, which reuses it when its copy has ended. Together the chunks are smaller
/// than the processor's last cache: what is copied soon after it was written never costs the host's memory a transfer.
/// A thread takes turns with two chunks where it can: they stay in the caches of its own core.
/// Invariant: free + being filled + being copied = size. Thread-safe.
class StagingRing {
 public:
  /// Tells when the copy out of a chunk has ended. Both functions may throw what the device failed with.
  class Copies {
   public:
    virtual ~Copies() = default;
    /// Whether the copy has ended. Doesn't wait.
    virtual bool has_ended(std::size_t chunk) = 0;
    /// Waits until it has. Called by several threads, but for one chunk by one at a time.
    virtual void wait_for(std::size_t chunk) = 0;
  };

  /// The right to fill one chunk, until destroyed or left to the ring. Move-only.
  class Chunk {
   public:
    Chunk() = default;
    Chunk(Chunk&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)), index_(other.index_) {}
    Chunk& operator=(Chunk&& other) noexcept {
      if (this != &other) {
        reset();
        ring_ = std::exchange(other.ring_, nullptr);
        index_ = other.index_;
      }
      return *this;
    }
    ~Chunk() { reset(); }

    explicit operator bool() const noexcept { return ring_ != nullptr; }
    /// Number of the chunk in its ring, from 0.
    std::size_t index() const noexcept { return index_; }
    std::span<std::byte> memory() const noexcept { return ring_->memory(index_); }
    /// Gives the chunk back. No copy of it is under way.
    void reset() noexcept {
      if (StagingRing* ring = std::exchange(ring_, nullptr)) ring->give_back(index_);
    }

   private:
    friend class StagingRing;
    Chunk(StagingRing& ring, std::size_t index) noexcept : ring_(&ring), index_(index) {}
    StagingRing* ring_ = nullptr;
    std::size_t index_ = 0;
  };

  /// As many chunks of `chunk_bytes` as fit `memory`, which outlives the ring as `copies` does.
  StagingRing(std::span<std::byte> memory, std::size_t chunk_bytes, Copies& copies);
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  /// A chunk; blocks while all are being filled or copied, and while two that this thread filled are being copied.
  /// `give_up` is asked first, and every few milliseconds while all are being filled.
  /// \returns none when it says so. \throws what a copy failed with.
  std::optional<Chunk> acquire(const std::function<bool()>& give_up = {});
  /// A chunk that is free now, or none. \throws as `acquire`.
  std::optional<Chunk> try_acquire();
  /// The chunk is free again when its copy, which is under way, has ended.
  void leave(Chunk&& chunk) noexcept;
  /// Takes back chunks whose copies have ended. \throws as `acquire`.
  void reclaim();

  std::size_t size() const noexcept { return size_; }
  std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }

 private:
  using Copying = std::vector<std::size_t>;

  Copying::iterator oldest_of_two_own() noexcept;
  Chunk wait_for(Copying::iterator chunk, std::unique_lock<std::mutex>& lock);
  void give_back(std::size_t index) noexcept;
  std::optional<Chunk> take_free();
  std::span<std::byte> memory(std::size_t index) const noexcept {
    return memory_.subspan(index * chunk_bytes_, chunk_bytes_);
  }

  std::span<std::byte> memory_;
  std::size_t chunk_bytes_;
  std::size_t size_;  ///< chunks
  Copies& copies_;

  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::vector<std::size_t> free_;           ///< the one that was used last at the end: it is in a cache
  Copying copying_;                         ///< in the order in which they were left
  std::vector<std::thread::id> filled_by_;  ///< by chunk: who left it last
};

}  // namespace slidestream::runtime
