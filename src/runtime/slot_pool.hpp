#pragma once

#include <concurrentqueue.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/host_memory.hpp"

namespace slidestream::runtime {

class SlotPool;

/// The right to use one slot's memory, until destroyed or reset. Move-only.
class Slot {
 public:
  Slot() = default;
  Slot(Slot&& other) noexcept;
  Slot& operator=(Slot&& other) noexcept;
  ~Slot();

  explicit operator bool() const noexcept { return pool_ != nullptr; }
  /// Number of the slot in its pool, from 0.
  std::size_t index() const noexcept { return index_; }
  std::span<std::byte> memory() const noexcept;
  /// Gives the slot back. Whoever calls has finished with the memory.
  void reset() noexcept;

 private:
  friend class SlotPool;
  Slot(SlotPool& pool, std::size_t index) noexcept : pool_(&pool), index_(index) {}
  SlotPool* pool_ = nullptr;
  std::size_t index_ = 0;
};

/// A fixed number of equal slots of host memory, made once. Free ones wait in a lock-free queue.
/// Invariant: free + checked out + not ready = size, always; a slot is in the queue once, or held by exactly one
/// `Slot`, or hasn't been made ready.
class SlotPool {
 public:
  enum class Start {
    ready,      ///< all slots are free
    not_ready,  ///< a slot is free once somebody has made it ready
  };
  /// `on_free` is called after each slot has come back, from the releasing thread, and after each was made ready later.
  SlotPool(std::size_t slots, std::size_t bytes_per_slot, std::function<void()> on_free = {},
           Start start = Start::ready);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  /// A free slot, or nothing when all are out. Thread-safe, never blocks.
  std::optional<Slot> try_acquire();

  /// Frees a slot of a pool that started without, once each. Thread-safe.
  void make_ready(std::size_t index) noexcept;

  std::size_t size() const noexcept { return memory_.size(); }
  /// Slots that nobody has made ready yet.
  std::size_t not_ready() const noexcept { return not_ready_.load(std::memory_order_acquire); }
  std::size_t bytes_per_slot() const noexcept { return bytes_per_slot_; }
  /// A slot's memory, whoever holds it.
  std::span<std::byte> memory(std::size_t index) const noexcept { return memory_[index].bytes(); }
  /// Slots held now; exact when no other thread acquires or releases.
  std::size_t checked_out() const noexcept { return checked_out_.load(std::memory_order_relaxed); }

 private:
  friend class Slot;
  void release(std::size_t index) noexcept;
  void free(std::size_t index) noexcept;

  std::size_t bytes_per_slot_;
  std::vector<HostMemory> memory_;
  std::function<void()> on_free_;
  std::atomic<std::size_t> checked_out_{0};
  std::atomic<std::size_t> not_ready_{0};
  moodycamel::ConcurrentQueue<std::size_t> free_;
};

}  // namespace slidestream::runtime
