#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace slidestream::runtime {

/// Threads that may block on storage, and share jobs that have parts. Whoever is free takes a part of the job that
/// comes first and has one: so jobs are done one after the other, each by as many threads as it has parts for, and what
/// comes next begins while the last parts are under way. Were each thread to keep to a job of its own, all jobs would
/// be done at the same time, and late.
class ReadingThreads {
 public:
  /// What is called may not throw. All but `part` is called once, by one thread; what one call wrote the next may read.
  struct Job {
    /// Before all parts. \returns how many threads may do parts of it at the same time.
    std::function<std::size_t()> begin;
    /// Does one part, where there is one left. \returns whether there may be more. Called by several threads at a time.
    std::function<bool()> part;
    /// After all parts.
    std::function<void()> end;
  };

  /// \throws std::system_error when a thread can't be started; those that were are joined first.
  explicit ReadingThreads(std::size_t threads);
  /// Does what was submitted, then joins.
  ~ReadingThreads();
  ReadingThreads(const ReadingThreads&) = delete;
  ReadingThreads& operator=(const ReadingThreads&) = delete;

  /// \param place  jobs with a lower one come first; among equal ones those that were submitted first.
  void submit(std::uint64_t place, Job job);

 private:
  struct Entry {
    enum class State { waiting, beginning, open, empty };
    std::uint64_t place;
    Job job;
    State state = State::waiting;
    std::size_t most_threads = 0;
    std::size_t threads = 0;  ///< that do parts
  };
  using Entries = std::list<Entry>;

  void work();
  void finish() noexcept;
  Entries::iterator next();
  void begin(Entry& entry, std::unique_lock<std::mutex>& lock);
  void do_part(Entry& entry, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  ///< of what follows, but for the threads
  std::condition_variable changed_;
  Entries entries_;  ///< by place; those that are under way, too
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace slidestream::runtime
