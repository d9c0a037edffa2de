#include "runtime/reading_threads.hpp"

#include <algorithm>
#include <utility>

namespace slidestream::runtime {

ReadingThreads::ReadingThreads(std::size_t threads) {
  threads_.reserve(threads);
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    finish();
    throw;
  }
}

ReadingThreads::~ReadingThreads() { finish(); }

void ReadingThreads::finish() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReadingThreads::submit(std::uint64_t place, Job job) {
  Entries made;
  made.push_back({place, std::move(job)});
  {
    const std::lock_guard lock(mutex_);
    const auto behind = std::ranges::find_if(entries_, [place](const Entry& entry) { return entry.place > place; });
    entries_.splice(behind, made);
  }
  changed_.notify_one();
}

/// The first job for which a thread can do something.
ReadingThreads::Entries::iterator ReadingThreads::next() {
  return std::ranges::find_if(entries_, [](const Entry& entry) {
    return entry.state == Entry::State::waiting ||
           (entry.state == Entry::State::open && entry.threads < entry.most_threads);
  });
}

void ReadingThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto entry = next();
    if (entry == entries_.end()) {
      if (ending_ && entries_.empty()) return;
      changed_.wait(lock);
      continue;
    }
    if (entry->state == Entry::State::waiting) {
      begin(*entry, lock);
    } else {
      do_part(*entry, lock);
    }
    if (entry->state != Entry::State::empty || entry->threads > 0) continue;
    Entries ended;
    ended.splice(ended.begin(), entries_, entry);
    // Others may wait for there to be none.
    if (ending_ && entries_.empty()) changed_.notify_all();
    lock.unlock();
    ended.front().job.end();
    ended.clear();
    lock.lock();
  }
}

void ReadingThreads::begin(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.state = Entry::State::beginning;
  lock.unlock();
  const std::size_t most = entry.job.begin();
  lock.lock();
  entry.most_threads = most;
  entry.state = most > 0 ? Entry::State::open : Entry::State::empty;
  if (most > 1) changed_.notify_all();
}

void ReadingThreads::do_part(Entry& entry, std::unique_lock<std::mutex>& lock) {
  ++entry.threads;
  lock.unlock();
  const bool more = entry.job.part();
  lock.lock();
  --entry.threads;
  if (!more) {
    entry.state = Entry::State::empty;
  } else if (entry.threads + 1 == entry.most_threads) {
    // One more may take part; this thread may have an earlier job to see to.
    changed_.notify_one();
  }
}

}  // namespace slidestream::runtime
