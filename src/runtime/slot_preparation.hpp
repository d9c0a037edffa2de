#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/slot_pool.hpp"

namespace slidestream::runtime {

/// Makes a pool's slots ready in the background, in their order, so that work begins with the first: threads share the
/// taking of pages from the system. A slot is ready with its front; the rests of all slots come after all fronts.
class SlotPreparation {
 public:
  /// What is done besides, each on one of the threads; `ended` and `failed` must not throw.
  struct Steps {
    std::function<void()> begin;                      ///< at first, on every thread
    std::function<void(std::size_t index)> complete;  ///< with a slot whose front has its pages, before it is ready
    std::function<void(std::exception_ptr)> failed;   ///< with what `begin` or `complete` threw; then the rest is left
    std::function<void()> ended;                      ///< once, after all else, if it was started
    std::function<void(std::size_t index)> rest{};    ///< takes and completes what is behind the front
  };

  /// The pool outlives this, and none of its slots is ready. Their first `front` bytes are their front. \throws
  /// std::system_error when no thread can be started.
  SlotPreparation(SlotPool& pool, std::size_t front, std::size_t threads, Steps steps);
  /// Stops and waits.
  ~SlotPreparation();
  SlotPreparation(const SlotPreparation&) = delete;
  SlotPreparation& operator=(const SlotPreparation&) = delete;

  /// Before, nothing is called.
  void start() noexcept { proceed(Phase::started); }
  /// No slot is begun any more: nobody wants those that aren't ready. Doesn't wait. Thread-safe.
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }

 private:
  bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }
  enum class Phase { waiting, started, given_up };
  void proceed(Phase phase) noexcept;
  void join() noexcept;
  void work() noexcept;
  void prepare_fronts();
  void prepare_rests();

  SlotPool& pool_;
  Steps steps_;
  std::size_t front_;  ///< bytes
  std::size_t parts_;  ///< of a front
  std::atomic<Phase> phase_{Phase::waiting};
  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> next_part_{0};  ///< of all fronts, that no thread has taken
  std::atomic<std::size_t> next_rest_{0};
  std::vector<std::atomic<std::size_t>> parts_left_;
  std::atomic<std::size_t> working_{0};
  std::vector<std::thread> threads_;
};

}  // namespace slidestream::runtime
