#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "runtime/host_memory.hpp"
#include "runtime/slot_pool.hpp"

namespace slidestream::runtime {

/// `count` blocks of `bytes` near a NUMA node, of which threads have taken the first `front` bytes: for a pool that is
/// made later. \throws std::bad_alloc; std::system_error when a thread can't be started.
std::vector<HostMemory> take_ahead(std::size_t count, std::size_t bytes, std::size_t front, std::size_t threads,
                                   int numa_node);

/// Makes a pool's slots ready in the background, in their order, each when it is asked for: a run that gets along with
/// a few never pays for the others. Threads share the taking of a slot's pages from the system.
class SlotPreparation {
 public:
  /// What is done besides, each on one of the threads; `settled` and `failed` must not throw.
  struct Steps {
    std::function<void()> begin;                      ///< at first, on every thread
    std::function<void(std::size_t index)> complete;  ///< with a slot whose front has its pages, before it is ready
    std::function<void(std::exception_ptr)> failed;  ///< with what `begin` or `complete` threw; no more slots come then
    std::function<void()> settled;                   ///< once for each slot asked for: it is ready, or never will be
    std::function<std::span<std::byte>(std::size_t index)> besides{};  ///< memory that is taken with a slot's front
  };

  /// The pool outlives this, and none of its slots is ready. Of each the first `front` bytes are taken. \throws
  /// std::system_error when no thread can be started.
  SlotPreparation(SlotPool& pool, std::size_t front, std::size_t threads, Steps steps);
  /// Stops and waits.
  ~SlotPreparation();
  SlotPreparation(const SlotPreparation&) = delete;
  SlotPreparation& operator=(const SlotPreparation&) = delete;

  /// Asks for one more slot. False: all were asked for, or no more come. Doesn't wait. Thread-safe.
  bool want();
  /// No slot is begun any more: nobody wants those that aren't ready. Doesn't wait. Thread-safe.
  void stop() noexcept;

 private:
  void join() noexcept;
  void work() noexcept;
  void prepare();
  bool take_part(std::size_t& part);

  SlotPool& pool_;
  Steps steps_;
  std::size_t front_;  ///< bytes
  std::size_t front_parts_;
  std::size_t parts_;  ///< of a slot: of its front, then of what is besides

  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::size_t wanted_ = 0;     ///< slots
  std::size_t unsettled_ = 0;  ///< of them
  std::size_t next_part_ = 0;  ///< of all slots, that no thread has taken
  std::vector<std::size_t> parts_left_;
  bool stopped_ = false;
  std::size_t working_ = 0;  ///< threads

  std::vector<std::thread> threads_;
};

}  // namespace slidestream::runtime
