#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/trace.hpp"

namespace slidestream::runtime {

/// Counts what one stage does; any number of threads add to it.
class StageMeter {
 public:
  explicit StageMeter(const char* name) : name_(name) {}

  const char* name() const noexcept { return name_.text(); }
  double busy_seconds() const noexcept { return 1e-9 * static_cast<double>(busy_.load(std::memory_order_relaxed)); }
  double wait_seconds() const noexcept { return 1e-9 * static_cast<double>(wait_.load(std::memory_order_relaxed)); }
  std::uint64_t items() const noexcept { return items_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  void add(std::uint64_t items, std::uint64_t bytes) noexcept {
    items_.fetch_add(items, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// Time that a batch stood before this stage, since `ready`.
  void add_wait(Clock::time_point ready) noexcept {
    wait_.fetch_add(nanoseconds(ready, Clock::now()), std::memory_order_relaxed);
  }

  /// Time that was measured elsewhere, on a device's own clock.
  void add_busy(std::chrono::duration<float, std::milli> time) noexcept {
    busy_.fetch_add(static_cast<std::uint64_t>(std::max(time.count(), 0.0F) * 1e6F), std::memory_order_relaxed);
  }

  /// Adds its own lifetime to the stage's busy time, and is a range of traces. Ranges of a thread nest.
  class Busy {
   public:
    explicit Busy(StageMeter& meter, RangePayload payload = {}) noexcept : Busy(meter, payload, true) {}
    ~Busy() {
      const Clock::time_point end = Clock::now();
      if (metered_) meter_.busy_.fetch_add(nanoseconds(start_, end), std::memory_order_relaxed);
      if (listeners_.any()) listeners_.end(meter_.name_, payload_, start_, end, bytes_);
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

    /// Counts for the stage; the bytes belong to this range.
    void add(std::uint64_t items, std::uint64_t bytes) noexcept {
      meter_.add(items, bytes);
      bytes_ += bytes;
    }

   protected:
    Busy(StageMeter& meter, RangePayload payload, bool metered) noexcept
        : meter_(meter), payload_(payload), metered_(metered), listeners_(RangeListeners::now()), start_(Clock::now()) {
      if (listeners_.any()) listeners_.begin(meter.name_, payload);
    }

   private:
    StageMeter& meter_;
    RangePayload payload_;
    bool metered_;
    std::uint64_t bytes_ = 0;
    RangeListeners listeners_;
    Clock::time_point start_;
  };

  /// The range alone: work is handed to a device, which measures it itself (`add_busy`).
  class Handing : public Busy {
   public:
    explicit Handing(StageMeter& meter, RangePayload payload = {}) noexcept : Busy(meter, payload, false) {}
  };

 private:
  static std::uint64_t nanoseconds(Clock::time_point since, Clock::time_point until) noexcept {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(until - since).count();
    return passed > 0 ? static_cast<std::uint64_t>(passed) : 0;
  }

  RangeName name_;
  std::atomic<std::uint64_t> busy_{0};
  std::atomic<std::uint64_t> wait_{0};
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace slidestream::runtime
