#include "runtime/slot_preparation.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/host_memory.hpp"

namespace slidestream::runtime {
namespace {

/// What a thread takes at a time: a few milliseconds of work, which is also how long a stop may take.
constexpr std::size_t part_bytes = std::size_t{16} << 20;

}  // namespace

SlotPreparation::SlotPreparation(SlotPool& pool, std::size_t front, std::size_t threads, Steps steps)
    : pool_(pool),
      steps_(std::move(steps)),
      front_(std::min(front, pool.bytes_per_slot())),
      parts_(std::max<std::size_t>(1, (front_ + part_bytes - 1) / part_bytes)),
      parts_left_(pool.size()),
      working_(threads) {
  for (std::atomic<std::size_t>& left : parts_left_) left.store(parts_, std::memory_order_relaxed);
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
  proceed(Phase::given_up);
  for (std::thread& thread : threads_) thread.join();
}

void SlotPreparation::proceed(Phase phase) noexcept {
  Phase waiting = Phase::waiting;
  phase_.compare_exchange_strong(waiting, phase);
  phase_.notify_all();
}

void SlotPreparation::work() noexcept {
  phase_.wait(Phase::waiting);
  if (phase_.load() == Phase::given_up) return;
  try {
    if (steps_.begin) steps_.begin();
    prepare_fronts();
    if (steps_.rest) prepare_rests();
  } catch (...) {
    stop();
    if (steps_.failed) steps_.failed(std::current_exception());
  }
  if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1 && steps_.ended) steps_.ended();
}

void SlotPreparation::prepare_fronts() {
  while (!stopped()) {
    const std::size_t part = next_part_.fetch_add(1, std::memory_order_relaxed);
    const std::size_t slot = part / parts_;
    if (slot >= pool_.size()) return;
    const std::span<std::byte> memory = pool_.memory(slot).first(front_);
    const std::size_t begin = std::min(part % parts_ * part_bytes, memory.size());
    populate(memory.subspan(begin, std::min(part_bytes, memory.size() - begin)));
    if (parts_left_[slot].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    if (steps_.complete) steps_.complete(slot);
    pool_.make_ready(slot);
  }
}

void SlotPreparation::prepare_rests() {
  while (!stopped()) {
    const std::size_t slot = next_rest_.fetch_add(1, std::memory_order_relaxed);
    if (slot >= pool_.size()) return;
    steps_.rest(slot);
  }
}

}  // namespace slidestream::runtime
