#pragma once

#include <blockingconcurrentqueue.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace slidestream::runtime {

/// Threads that may block on storage, so that no worker of the graph ever does. Callers bound what they submit: here it
/// is bounded by the slots.
class IoThreads {
 public:
  /// \throws std::system_error when a thread can't be started; those that were are joined first.
  explicit IoThreads(std::size_t threads);
  /// Runs what was submitted, then joins.
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  /// Runs `task` on one of the threads. `task` must not throw.
  void submit(std::function<void()> task);

 private:
  void work();
  void end() noexcept;

  moodycamel::BlockingConcurrentQueue<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
};

/// Threads that take up tasks in the order in which they were submitted. With `IoThreads` that holds for tasks of one
/// submitting thread alone.
class OrderedIoThreads {
 public:
  /// \throws std::system_error as `IoThreads` does.
  explicit OrderedIoThreads(std::size_t threads) : threads_(threads) {}

  /// Runs `task` on one of the threads. `task` must not throw. Thread-safe.
  void submit(std::function<void()> task);

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> waiting_;  ///< guarded by mutex_
  IoThreads threads_;                          ///< ends first
};

}  // namespace slidestream::runtime
