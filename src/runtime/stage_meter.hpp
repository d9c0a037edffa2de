#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace slidestream::runtime {

using Clock = std::chrono::steady_clock;

/// Counts what one stage does; any number of threads add to it.
class StageMeter {
 public:
  explicit StageMeter(const char* name) noexcept : name_(name) {}

  const char* name() const noexcept { return name_; }
  double busy_seconds() const noexcept { return 1e-9 * static_cast<double>(busy_.load(std::memory_order_relaxed)); }
  double wait_seconds() const noexcept { return 1e-9 * static_cast<double>(wait_.load(std::memory_order_relaxed)); }
  std::uint64_t items() const noexcept { return items_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  void add(std::uint64_t items, std::uint64_t bytes) noexcept {
    items_.fetch_add(items, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// Time that a batch stood before this stage, since `ready`.
  void add_wait(Clock::time_point ready) noexcept { wait_.fetch_add(nanoseconds(ready), std::memory_order_relaxed); }

  /// Adds its own lifetime to the stage's busy time.
  class Busy {
   public:
    explicit Busy(StageMeter& meter) noexcept : meter_(meter), start_(Clock::now()) {}
    ~Busy() { meter_.busy_.fetch_add(nanoseconds(start_), std::memory_order_relaxed); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    StageMeter& meter_;
    Clock::time_point start_;
  };

 private:
  static std::uint64_t nanoseconds(Clock::time_point since) noexcept {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since).count();
    return passed > 0 ? static_cast<std::uint64_t>(passed) : 0;
  }

  const char* name_;
  std::atomic<std::uint64_t> busy_{0};
  std::atomic<std::uint64_t> wait_{0};
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace slidestream::runtime
