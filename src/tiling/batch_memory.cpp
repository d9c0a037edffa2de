#include "tiling/batch_memory.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

namespace slidestream {

namespace {

/// Blocks of pools that don't keep them any more. A child of a fork has none, as it may have the lock as a thread of
/// its parent had it.
class SpareBlocks {
 public:
  using Block = BatchMemory::Block;

  SpareBlocks() { blocks_.reserve(most_blocks); }

  /// Of `bytes` or at most half as many more; null when there is none.
  Block take(std::size_t bytes) {
    if (process_ != ::getpid()) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto fits = [&](const Block& block) {
      const std::size_t has = block->bytes().size();
      return has >= bytes && has - bytes <= bytes / 2;
    };
    const auto last = std::find_if(blocks_.rbegin(), blocks_.rend(), fits);
    if (last == blocks_.rend()) return nullptr;
    Block block = std::move(*last);
    blocks_.erase(std::next(last).base());
    bytes_ -= block->bytes().size();
    return block;
  }

  void give(Block block) noexcept {
    if (process_ != ::getpid()) return;
    const std::size_t bytes = block->bytes().size();
    if (bytes < least || bytes > BatchMemory::most_spare) return;
    // Those that go are given back to the system without the lock.
    std::array<Block, most_blocks> dropped;
    const std::lock_guard lock(mutex_);
    std::size_t drops = 0;
    while (bytes_ + bytes > BatchMemory::most_spare) {
      bytes_ -= blocks_[drops]->bytes().size();
      std::swap(dropped[drops], blocks_[drops]);
      ++drops;
    }
    blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(drops));
    blocks_.push_back(std::move(block));
    bytes_ += bytes;
  }

 private:
  static constexpr std::size_t least = std::size_t{1} << 20;  ///< of a block; others cost little to take
  static constexpr std::size_t most_blocks = BatchMemory::most_spare / least;

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::vector<Block> blocks_;  // the oldest first; guarded by mutex_
  std::size_t bytes_ = 0;      // of these; guarded by mutex_
};

/// Is never destroyed: what holds a block may go after everything else.
SpareBlocks& spare_blocks() {
  static SpareBlocks& spare = *new SpareBlocks;
  return spare;
}

}  // namespace

void BatchMemory::Lease::hand_back() noexcept {
  const std::shared_ptr<BatchMemory> from = std::exchange(from_, nullptr);
  // A child that was forked may have the lock as a thread of its parent had it.
  if (from == nullptr || from->process_ != ::getpid()) return;
  {
    const std::lock_guard lock(from->mutex_);
    // There is room for all that may be kept.
    if (from->free_.size() < from->most_kept_) {
      from->free_.push_back(block_);
      return;
    }
  }
  spare_blocks().give(block_);
}

BatchMemory::~BatchMemory() {
  for (Block& block : free_) spare_blocks().give(std::move(block));
}

void BatchMemory::keep(std::size_t most) {
  const std::lock_guard lock(mutex_);
  most_kept_ = most;
  free_.reserve(most);
  for (; free_.size() > most; free_.pop_back()) spare_blocks().give(std::move(free_.back()));
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
  if (block == nullptr) block = spare_blocks().take(offset + bytes_);
  if (block == nullptr) block = std::make_shared<runtime::HostMemory>(offset + bytes_);
  return std::make_shared<Lease>(shared_from_this(), std::move(block));
}

}  // namespace slidestream
