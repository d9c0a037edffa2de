#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <slidestream/error.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "tiling/tile_stream.hpp"

/// \file
/// What a stream's threads and its caller share.

namespace slidestream {

/// Batches on their way from the threads that make them to the caller. The stream's own members say how they are made.
/// A process that was forked from the stream's own has this, but not its threads, and the lock as some thread had it.
/// \tparam Batch  being made, with `coords` and `slides` of its windows; `count` were begun, `windows_made` are made
/// \tparam Plan  windows that are planned together
template <class Batch, class Plan>
struct StreamState {
  explicit StreamState(std::int64_t windows) : batch_windows(windows) {}

  const std::int64_t batch_windows;  ///< of a whole batch
  const pid_t process = ::getpid();
  std::vector<std::thread> threads;
  std::mutex joining;  ///< held by who joins the threads

  mutable std::mutex mutex;  ///< guards all that follows
  std::condition_variable work_changed;
  std::condition_variable batches_changed;
  bool stopping = false;
  bool exhausted = false;  ///< all windows were begun
  int running = 0;         ///< threads that make pixels
  std::exception_ptr failure;

  std::shared_ptr<Plan> planned;  ///< behind the current ones
  bool all_planned = false;
  std::exception_ptr planning_failure;
  bool planning = false;
  std::shared_ptr<Plan> current;

  std::deque<std::unique_ptr<Batch>> open;  ///< from number `delivered` on
  std::int64_t delivered = 0;               ///< batches
  std::int64_t most_open = 0;

  bool is_forked() const noexcept { return process != ::getpid(); }

  /// Whether the batch that is due is whole. With the lock.
  bool is_due() const {
    if (open.empty()) return false;
    const std::int64_t made = open.front()->windows_made;
    return made == batch_windows || (exhausted && made == open.front()->count);
  }

  /// Whether `stop` was called.
  bool was_left() const {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  /// Plans what comes behind the current windows, the lock being free meanwhile. \param plan  gives null at the end
  template <class MakePlan>
  void plan_ahead(std::unique_lock<std::mutex>& lock, const MakePlan& plan) {
    planning = true;
    lock.unlock();
    std::shared_ptr<Plan> made;
    std::exception_ptr caught;
    try {
      made = plan();
    } catch (...) {
      caught = std::current_exception();
    }
    lock.lock();
    planning = false;
    // It is told when its windows are due.
    planning_failure = caught;
    all_planned = made == nullptr;
    planned = std::move(made);
    work_changed.notify_all();
  }

  /// Makes pixels, the lock being free meanwhile. What `make` throws ends the stream.
  template <class Make>
  void run_unlocked(std::unique_lock<std::mutex>& lock, const Make& make) {
    ++running;
    lock.unlock();
    std::exception_ptr caught;
    try {
      make();
    } catch (...) {
      caught = std::current_exception();
    }
    lock.lock();
    --running;
    if (caught != nullptr && failure == nullptr) failure = caught;
  }

  /// `TileStream::next`, but for the pixels. \returns the batch, or null where `state` is another than `batch`
  template <class Given>
  std::unique_ptr<Batch> take_due(Given& given, std::chrono::milliseconds patience, TileStream::State& state) {
    if (is_forked()) throw Error("tiles were begun by another process: begin them in the one that uses them");
    std::unique_ptr<Batch> made;
    {
      std::unique_lock lock(mutex);
      const auto is_over = [&] {
        return stopping || (exhausted && open.empty()) || (failure != nullptr && running == 0);
      };
      state = TileStream::State::waiting;
      if (!batches_changed.wait_for(lock, patience, [&] { return is_due() || is_over(); })) return nullptr;
      state = TileStream::State::end;
      if (stopping) return nullptr;
      if (!is_due()) {
        if (failure != nullptr) std::rethrow_exception(failure);
        return nullptr;
      }
      made = std::move(open.front());
      open.pop_front();
      ++delivered;
    }
    work_changed.notify_all();
    state = TileStream::State::batch;
    given.coords = std::move(made->coords);
    given.slides = std::move(made->slides);
    given.count = made->count;
    given.coords.resize(static_cast<std::size_t>(2 * given.count));
    given.slides.resize(static_cast<std::size_t>(given.count));
    return made;
  }

  /// Ends the threads, which finish what they are making.
  void stop() noexcept {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    work_changed.notify_all();
    batches_changed.notify_all();
    const std::lock_guard lock(joining);
    for (std::thread& thread : threads) {
      if (thread.joinable()) thread.join();
    }
  }
};

}  // namespace slidestream
