#include "runtime/slot_preparation.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <span>
#include <utility>

#include "runtime/machine.hpp"

namespace slidestream::runtime {
namespace {

/// What a thread takes at a time: a millisecond of work, which is also how long a stop may take.
constexpr std::size_t part_bytes = std::size_t{4} << 20;

std::size_t parts_of(std::size_t bytes) { return (bytes + part_bytes - 1) / part_bytes; }

void populate_part(std::span<std::byte> memory, std::size_t part) {
  const std::size_t begin = std::min(part * part_bytes, memory.size());
  populate(memory.subspan(begin, std::min(part_bytes, memory.size() - begin)));
}

}  // namespace

std::vector<HostMemory> take_ahead(std::size_t count, std::size_t bytes, std::size_t front, std::size_t threads,
                                   int numa_node) {
  std::vector<HostMemory> blocks;
  blocks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    blocks.emplace_back(bytes);
    place_on_node(blocks.back().bytes(), numa_node);
    blocks.back().set_taken(std::min(front, bytes));
  }
  const std::size_t parts = parts_of(std::min(front, bytes));
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    run_near_node(numa_node);
    for (std::size_t part = next++; part < count * parts; part = next++) {
      HostMemory& block = blocks[part / parts];
      populate_part(block.bytes().first(block.taken()), part % parts);
    }
  };
  {
    // Each is waited for at the end of the scope, also after an exception.
    std::vector<std::future<void>> workers;
    workers.reserve(threads);
    for (std::size_t i = 0; i < threads; ++i) workers.push_back(std::async(std::launch::async, work));
  }
  return blocks;
}

SlotPreparation::SlotPreparation(SlotPool& pool, std::size_t front, std::size_t threads, Steps steps)
    : pool_(pool),
      steps_(std::move(steps)),
      front_(std::min(front, pool.bytes_per_slot())),
      front_parts_(parts_of(front_)),
      parts_(std::max<std::size_t>(1, front_parts_ + (steps_.besides ? parts_of(steps_.besides(0).size()) : 0))),
      parts_left_(pool.size(), parts_),
      working_(threads) {
  threads_.reserve(threads);
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    join();
    throw;
  }
}

SlotPreparation::~SlotPreparation() { join(); }

void SlotPreparation::join() noexcept {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

bool SlotPreparation::want() {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || wanted_ == pool_.size()) return false;
    ++wanted_;
    ++unsettled_;
  }
  changed_.notify_all();
  return true;
}

void SlotPreparation::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

bool SlotPreparation::take_part(std::size_t& part) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || next_part_ < wanted_ * parts_; });
  if (stopped_) return false;
  part = next_part_++;
  return true;
}

void SlotPreparation::work() noexcept {
  try {
    prepare();
  } catch (...) {
    stop();
    if (steps_.failed) steps_.failed(std::current_exception());
  }
  std::size_t given_up = 0;
  {
    // After a stop nothing is asked for any more: the last thread knows all that will never be ready.
    const std::lock_guard lock(mutex_);
    if (--working_ == 0) given_up = std::exchange(unsettled_, 0);
  }
  for (; given_up > 0; --given_up) {
    if (steps_.settled) steps_.settled();
  }
}

void SlotPreparation::prepare() {
  bool begun = false;
  for (std::size_t part = 0; take_part(part);) {
    if (!begun && steps_.begin) steps_.begin();
    begun = true;
    const std::size_t slot = part / parts_;
    if (const std::size_t of_slot = part % parts_; of_slot >= front_parts_) {
      if (steps_.besides) populate_part(steps_.besides(slot), of_slot - front_parts_);
    } else if (pool_.taken(slot) < front_) {
      populate_part(pool_.memory(slot).first(front_), of_slot);
    }
    {
      const std::lock_guard lock(mutex_);
      if (--parts_left_[slot] > 0) continue;
    }
    if (steps_.complete) steps_.complete(slot);
    pool_.make_ready(slot);
    {
      const std::lock_guard lock(mutex_);
      --unsettled_;
    }
    if (steps_.settled) steps_.settled();
  }
}

}  // namespace slidestream::runtime
