#include "runtime/io_threads.hpp"

#include <new>
#include <utility>

namespace slidestream::runtime {

IoThreads::IoThreads(std::size_t threads) {
  threads_.reserve(threads);
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    end();
    throw;
  }
}

IoThreads::~IoThreads() { end(); }

void IoThreads::work() {
  for (;;) {
    std::function<void()> task;
    tasks_.wait_dequeue(task);
    if (!task) return;  // the sign to end
    task();
  }
}

void IoThreads::end() noexcept {
  for (std::size_t i = 0; i < threads_.size(); ++i) tasks_.enqueue({});
  for (std::thread& thread : threads_) thread.join();
}

void IoThreads::submit(std::function<void()> task) {
  if (!tasks_.enqueue(std::move(task))) throw std::bad_alloc();
}

void OrderedIoThreads::submit(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(task));
  try {
    threads_.submit([this] {
      std::function<void()> first;
      {
        const std::lock_guard lock_of_first(mutex_);
        first = std::move(waiting_.front());
        waiting_.pop_front();
      }
      first();
    });
  } catch (...) {
    waiting_.pop_back();
    throw;
  }
}

}  // namespace slidestream::runtime
