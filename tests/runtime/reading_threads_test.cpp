#include "runtime/reading_threads.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <latch>
#include <mutex>
#include <semaphore>
#include <vector>

using slidestream::runtime::ReadingThreads;

namespace {

/// A job of so many parts that notes what is called.
struct Counted {
  explicit Counted(int count) : left(count) {}

  ReadingThreads::Job job(std::size_t threads) {
    return {[this, threads] {
              CHECK(done == 0);
              begun = true;
              return threads;
            },
            [this] {
              if (left.fetch_sub(1) <= 0) return false;
              ++done;
              return true;
            },
            [this] {
              CHECK(begun);
              ended = true;
            }};
  }

  std::atomic<int> left;
  std::atomic<int> done{0};
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
};

}  // namespace

TEST_CASE("jobs begin, have all their parts done, and end, before the threads are gone") {
  std::deque<Counted> jobs;
  for (int i = 0; i < 20; ++i) jobs.emplace_back(i * 7 % 40);
  {
    ReadingThreads threads(3);
    for (std::size_t i = 0; i < jobs.size(); ++i) threads.submit(i % 5, jobs[i].job(1 + i % 4));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CAPTURE(i);
    CHECK(jobs[i].done == static_cast<int>(i * 7 % 40));
    CHECK(jobs[i].ended);
  }
}

TEST_CASE("a job without work for any thread ends") {
  std::latch ended(1);
  ReadingThreads threads(2);
  threads.submit(0, {[] { return std::size_t{0}; },
                     [] {
                       FAIL_CHECK("a part of nothing");
                       return false;
                     },
                     [&] { ended.count_down(); }});
  ended.wait();
}

TEST_CASE("threads share the job that comes first, whenever it was submitted") {
  // One thread is held up until all jobs are there; what comes next is in order, part by part.
  std::binary_semaphore all_there(0);
  std::vector<int> order;
  std::mutex mutex;
  {
    ReadingThreads threads(1);
    threads.submit(0, {[&] {
                         all_there.acquire();
                         return std::size_t{0};
                       },
                       [] { return false; }, [] {}});
    std::vector<std::atomic<int>> left(4);
    for (std::atomic<int>& parts : left) parts = 3;
    for (const int place : {3, 1, 2}) {
      const auto parts = static_cast<std::size_t>(place);
      threads.submit(parts, {[] { return std::size_t{8}; },
                             [&, place, parts] {
                               if (left[parts].fetch_sub(1) <= 0) return false;
                               const std::lock_guard lock(mutex);
                               order.push_back(place);
                               return true;
                             },
                             [&, place] {
                               const std::lock_guard lock(mutex);
                               order.push_back(-place);
                             }});
    }
    // An earlier one that comes while another is under way goes first.
    threads.submit(4, {[&] {
                         threads.submit(0, {[] { return std::size_t{1}; }, [] { return false; },
                                            [&] {
                                              const std::lock_guard lock(mutex);
                                              order.push_back(-5);
                                            }});
                         return std::size_t{1};
                       },
                       [] { return false; },
                       [&] {
                         const std::lock_guard lock(mutex);
                         order.push_back(-4);
                       }});
    all_there.release();
    // The parts' counts live until the threads have ended.
    std::latch last(1);
    threads.submit(9, {[] { return std::size_t{0}; }, [] { return false; }, [&] { last.count_down(); }});
    last.wait();
  }
  CHECK(order == std::vector<int>{1, 1, 1, -1, 2, 2, 2, -2, 3, 3, 3, -3, -5, -4});
}

TEST_CASE("several threads do parts of one job, no more than it lets") {
  std::atomic<int> at_work{0}, most{0};
  std::atomic<int> left{50};
  {
    std::latch both(2);
    ReadingThreads threads(4);
    threads.submit(0, {[] { return std::size_t{2}; },
                       [&] {
                         const int now = ++at_work;
                         int seen = most;
                         while (seen < now && !most.compare_exchange_weak(seen, now)) {
                         }
                         const int part = left.fetch_sub(1);
                         // The first two wait for each other: one thread alone would never end.
                         if (part > 48) both.arrive_and_wait();
                         --at_work;
                         return part > 1;
                       },
                       [] {}});
    both.wait();
  }
  CHECK(most == 2);
}
