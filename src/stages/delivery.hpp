#pragma once

#include <oneapi/tbb/flow_graph.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include <slidestream/results.hpp>

#include "runtime/handoff.hpp"
#include "runtime/io_threads.hpp"
#include "runtime/slot_pool.hpp"

namespace slidestream {

/// Hands finished slides to the caller of the run, one at a time and in the order in which they finished, on a thread
/// that may block: on a commit to a ledger, and the disk behind it.
///
/// Few results wait for it. One that finds others waiting keeps the slot of its slide's last batch until it was handed
/// over, so that a caller who is slow in the end stops the source, which gets no slots, and never a worker of the
/// graph.
class Delivery {
 public:
  /// Results of `lanes` ways through the graph that wait without keeping a slot.
  static std::size_t most_waiting(std::size_t lanes) noexcept { return 2 * lanes; }

  /// Slides between two calls of `on_pause`.
  static constexpr std::size_t most_put_off = 8;

  /// Those whom it calls (`RunControl`): both may be empty.
  struct Callers {
    std::function<void(SlideResult&)> on_slide;
    std::function<void()> on_pause;
  };

  /// What `callers` throw reaches `on_error`, on the same thread; results that come later are handed over all the same.
  /// The graph isn't idle while results wait, and must outlive this object.
  Delivery(std::size_t slides, std::size_t lanes, Callers callers, std::function<void(std::exception_ptr)> on_error,
           tbb::flow::graph& graph, runtime::GraphLifetime& lifetime);

  /// A slide that finished, the one of that index in the input, and its last slot, where it has one. Thread-safe;
  /// doesn't block.
  void put(SlideResult&& result, std::size_t index, runtime::Slot slot);

  /// Waits while as many results wait as may without a slot: for those who have no slot to give. On a thread that may
  /// wait.
  void wait_for_room();

  // Slides that were handed over, up to the last pause.
  std::uint64_t slides_done() const noexcept { return done_.load(std::memory_order_relaxed); }
  std::uint64_t slides_failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  /// Moves the slides, in input order, into `result`: once the graph is idle.
  void finish(RunResult& result);

 private:
  struct Waiting {
    SlideResult result;
    std::size_t index = 0;
    runtime::Slot slot;  ///< empty where few wait
    runtime::Handoff handoff;
  };
  void hand_over(Waiting& waiting) noexcept;
  void pause_when_none_waits() noexcept;

  std::size_t most_waiting_;
  Callers callers_;
  std::function<void(std::exception_ptr)> on_error_;
  tbb::flow::graph& graph_;
  runtime::GraphLifetime& lifetime_;
  std::atomic<std::size_t> waiting_{0};
  // Slides since the last pause, of the thread alone.
  std::uint64_t done_now_ = 0;
  std::uint64_t failed_now_ = 0;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::mutex mutex_;
  std::condition_variable handed_over_;
  std::vector<std::optional<SlideResult>> finished_;  ///< guarded by mutex_
  runtime::IoThreads thread_;                         ///< one; ends first
};

}  // namespace slidestream
