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
/// taking of each slot's pages from the system.
class SlotPreparation {
 public:
  /// What is done besides, each on one of the threads; `ended` and `failed` must not throw.
  struct Steps {
    std::function<void()> begin;                      ///< at first, on every thread
    std::function<void(std::size_t index)> complete;  ///< with a slot whose pages are there, before it is ready
    std::function<void(std::exception_ptr)> failed;   ///< with what `begin` or `complete` threw; then the rest is left
    std::function<void()> ended;                      ///< once, after all else, if it was started
  };

  /// The pool outlives this, and none of its slots is ready. \throws std::system_error when no thread can be started.
  SlotPreparation(SlotPool& pool, std::size_t threads, Steps steps);
  /// Stops and waits.
  ~SlotPreparation();
  SlotPreparation(const SlotPreparation&) = delete;
  SlotPreparation& operator=(const SlotPreparation&) = delete;

  /// Before, nothing is called.
  void start() noexcept { proceed(Phase::started); }
  /// No slot is begun any more: nobody wants those that aren't ready. Doesn't wait. Thread-safe.
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }

 private:
  enum class Phase { waiting, started, given_up };
  void proceed(Phase phase) noexcept;
  void join() noexcept;
  void work() noexcept;
  void prepare();

  SlotPool& pool_;
  Steps steps_;
  std::size_t parts_;  ///< of a slot
  std::atomic<Phase> phase_{Phase::waiting};
  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> next_part_{0};  ///< of all slots, that no thread has taken
  std::vector<std::atomic<std::size_t>> parts_left_;
  std::atomic<std::size_t> working_{0};
  std::vector<std::thread> threads_;
};

}  // namespace slidestream::runtime
