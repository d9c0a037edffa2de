#include "tiling/batch_memory.hpp"

#include <utility>

namespace slidestream {

void BatchMemory::Lease::hand_back() noexcept {
  const std::shared_ptr<BatchMemory> from = std::exchange(from_, nullptr);
  // A child that was forked may have the lock as a thread of its parent had it.
  if (from == nullptr || from->process_ != ::getpid()) return;
  const std::lock_guard lock(from->mutex_);
  // There is room for all that may be kept.
  if (from->free_.size() < from->most_kept_) from->free_.push_back(block_);
}

void BatchMemory::keep(std::size_t most) {
  const std::lock_guard lock(mutex_);
  most_kept_ = most;
  free_.reserve(most);
  if (free_.size() > most) free_.resize(most);
}

std::shared_ptr<BatchMemory::Lease> BatchMemory::take() {
  Block block;
  {
    const std::lock_guard lock(mutex_);
    free_.reserve(most_kept_);
    if (!free_.empty()) {
      block = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (block == nullptr) block = std::make_shared<runtime::HostMemory>(offset + bytes_);
  return std::make_shared<Lease>(shared_from_this(), std::move(block));
}

}  // namespace slidestream
