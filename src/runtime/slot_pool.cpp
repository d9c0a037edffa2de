#include "runtime/slot_pool.hpp"

#include <cassert>
#include <exception>
#include <new>
#include <utility>

namespace slidestream::runtime {

namespace {

/// While the exception is handled, so that a handler of the end can tell the cause.
[[noreturn]] void end_without_memory() noexcept {
  try {
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
    std::terminate();
  }
}

}  // namespace

Slot::Slot(Slot&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}

Slot& Slot::operator=(Slot&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = std::exchange(other.pool_, nullptr);
    index_ = other.index_;
  }
  return *this;
}

Slot::~Slot() { reset(); }

std::span<std::byte> Slot::memory() const noexcept { return pool_->memory_[index_].bytes(); }

void Slot::reset() noexcept {
  if (SlotPool* pool = std::exchange(pool_, nullptr)) pool->release(index_);
}

SlotPool::SlotPool(std::size_t slots, std::size_t bytes_per_slot, std::function<void()> on_free, Start start)
    : bytes_per_slot_(bytes_per_slot),
      on_free_(std::move(on_free)),
      not_ready_(start == Start::ready ? 0 : slots),
      // Room for every slot from every releasing thread's own block of the queue: only a thread's first release
      // allocates.
      free_(slots * 2 + moodycamel::ConcurrentQueueDefaultTraits::BLOCK_SIZE) {
  memory_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    memory_.emplace_back(bytes_per_slot);
    if (start == Start::ready && !free_.enqueue(i)) throw std::bad_alloc();
  }
}

SlotPool::~SlotPool() { assert(checked_out() == 0 && "a slot outlives its pool"); }

std::optional<Slot> SlotPool::try_acquire() {
  std::size_t index = 0;
  if (!free_.try_dequeue(index)) return std::nullopt;
  // Acquire here and release below order the uses of a slot's memory in terms that ThreadSanitizer understands; the
  // queue does the same with fences, which it doesn't.
  checked_out_.fetch_add(1, std::memory_order_acquire);
  return Slot(*this, index);
}

void SlotPool::release(std::size_t index) noexcept {
  checked_out_.fetch_sub(1, std::memory_order_release);
  free(index);
}

void SlotPool::make_ready(std::size_t index) noexcept {
  not_ready_.fetch_sub(1, std::memory_order_acq_rel);
  // What was done to the memory comes before its first use, as between a release and the next use.
  checked_out_.fetch_add(0, std::memory_order_release);
  free(index);
}

void SlotPool::free(std::size_t index) noexcept {
  // Fails only when the queue can't allocate what a thread has of it: a lost slot would hang the run, so end it
  // instead.
  if (!free_.enqueue(index)) end_without_memory();
  if (on_free_) on_free_();
}

}  // namespace slidestream::runtime
