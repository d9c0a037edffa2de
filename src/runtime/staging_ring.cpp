#include "runtime/staging_ring.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>

namespace slidestream::runtime {

StagingRing::StagingRing(std::span<std::byte> memory, std::size_t chunk_bytes, Copies& copies)
    : memory_(memory), chunk_bytes_(chunk_bytes), size_(memory.size() / chunk_bytes), copies_(copies) {
  assert(size_ > 0 && "a ring without a chunk");
  // Room for all of them, so that nothing allocates later.
  free_.reserve(size_);
  copying_.reserve(size_);
  filled_by_.resize(size_);
  for (std::size_t i = size_; i-- > 0;) free_.push_back(i);
}

StagingRing::~StagingRing() { assert(free_.size() + copying_.size() == size_ && "a chunk outlives its ring"); }

std::optional<StagingRing::Chunk> StagingRing::acquire(const std::function<bool()>& give_up) {
  // All chunks are being filled: whoever waits looks at `give_up` so often.
  constexpr std::chrono::milliseconds patience{10};
  std::unique_lock lock(mutex_);
  for (;;) {
    if (give_up && give_up()) return std::nullopt;
    if (const auto own = oldest_of_two_own(); own != copying_.end()) return wait_for(own, lock);
    if (std::optional<Chunk> chunk = take_free()) return chunk;
    if (!copying_.empty()) return wait_for(copying_.begin(), lock);
    changed_.wait_for(lock, patience);
  }
}

/// Of the chunks that the calling thread filled and that are being copied the one that was left first, where there are
/// two. With the lock held.
StagingRing::Copying::iterator StagingRing::oldest_of_two_own() noexcept {
  const auto is_own = [this, me = std::this_thread::get_id()](std::size_t chunk) { return filled_by_[chunk] == me; };
  const auto oldest = std::find_if(copying_.begin(), copying_.end(), is_own);
  if (oldest == copying_.end()) return oldest;
  return std::any_of(oldest + 1, copying_.end(), is_own) ? oldest : copying_.end();
}

/// Takes the chunk when its copy has ended; the lock isn't held meanwhile.
StagingRing::Chunk StagingRing::wait_for(Copying::iterator chunk, std::unique_lock<std::mutex>& lock) {
  const std::size_t index = *chunk;
  copying_.erase(chunk);
  lock.unlock();
  try {
    copies_.wait_for(index);
  } catch (...) {
    // Nobody knows what becomes of its copy.
    lock.lock();
    copying_.insert(copying_.begin(), index);
    changed_.notify_one();
    throw;
  }
  return Chunk(*this, index);
}

std::optional<StagingRing::Chunk> StagingRing::try_acquire() {
  const std::lock_guard lock(mutex_);
  return take_free();
}

void StagingRing::leave(Chunk&& chunk) noexcept {
  assert(chunk.ring_ == this && "a chunk of another ring");
  chunk.ring_ = nullptr;
  {
    const std::lock_guard lock(mutex_);
    filled_by_[chunk.index_] = std::this_thread::get_id();
    copying_.push_back(chunk.index_);
  }
  changed_.notify_one();
}

void StagingRing::reclaim() {
  const std::lock_guard lock(mutex_);
  while (!copying_.empty() && copies_.has_ended(copying_.front())) {
    free_.push_back(copying_.front());
    copying_.erase(copying_.begin());
  }
}

void StagingRing::give_back(std::size_t index) noexcept {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(index);
  }
  changed_.notify_one();
}

/// With the lock held.
std::optional<StagingRing::Chunk> StagingRing::take_free() {
  if (free_.empty() && !copying_.empty() && copies_.has_ended(copying_.front())) {
    free_.push_back(copying_.front());
    copying_.erase(copying_.begin());
  }
  if (free_.empty()) return std::nullopt;
  const std::size_t index = free_.back();
  free_.pop_back();
  return Chunk(*this, index);
}

}  // namespace slidestream::runtime
