#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <slidestream/trace.hpp>

/// \file
/// Ranges: when which thread worked on what. They go to a `TraceRecording`, and to a profiler that listens to NVTX.
/// While nobody listens a range costs one relaxed load.

namespace slidestream::runtime {

using Clock = std::chrono::steady_clock;

/// What a range is about; -1: nothing of that kind.
struct RangePayload {
  std::int64_t slide = -1;
  std::int64_t batch = -1;
};

/// A name of ranges, known to recordings and to the profiler.
class RangeName {
 public:
  /// The text stays with its maker.
  explicit RangeName(const char* text);
  const char* text() const noexcept { return text_; }

 private:
  friend class RangeListeners;
  const char* text_;
  std::uint32_t index_;
  [[maybe_unused]] void* nvtx_string_;  ///< null unless a profiler listens
};

/// Those who want to know of ranges at this moment.
class RangeListeners {
 public:
  /// Stands at the start of every range.
  static RangeListeners now() noexcept { return RangeListeners(active_.load(std::memory_order_relaxed)); }

  bool any() const noexcept { return bits_ != 0; }
  void begin(const RangeName& name, const RangePayload& payload) const noexcept;
  /// By the same thread that began.
  void end(const RangeName& name, const RangePayload& payload, Clock::time_point start, Clock::time_point end,
           std::uint64_t bytes) const noexcept;

  static constexpr unsigned recording = 1;
  static constexpr unsigned profiler = 2;
  static void add(unsigned bit) noexcept { active_.fetch_or(bit, std::memory_order_relaxed); }
  static void remove(unsigned bit) noexcept { active_.fetch_and(~bit, std::memory_order_relaxed); }

 private:
  explicit RangeListeners(unsigned bits) noexcept : bits_(bits) {}

  static inline std::atomic<unsigned> active_{0};
  unsigned bits_;
};

}  // namespace slidestream::runtime
