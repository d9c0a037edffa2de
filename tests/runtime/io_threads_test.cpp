#include "runtime/io_threads.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <latch>
#include <memory>
#include <semaphore>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/machine.hpp"

using slidestream::runtime::IoThreads;

// Sanitizers need address space of their own.
#ifndef SLIDESTREAM_SANITIZED
#define SLIDESTREAM_TEST_LIMITS_ADDRESS_SPACE
#endif

#ifdef SLIDESTREAM_TEST_LIMITS_ADDRESS_SPACE
namespace {

std::size_t address_space_in_use() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace
#endif

TEST_CASE("everything submitted runs before the threads are gone") {
  std::atomic<int> done{0};
  {
    IoThreads io(3);
    for (int i = 0; i < 100; ++i) io.submit([&] { ++done; });
  }
  CHECK(done == 100);
}

TEST_CASE("ordered threads take up tasks in the order in which several threads submitted them") {
  std::vector<int> order;
  std::latch all_are_there(1);
  {
    slidestream::runtime::OrderedIoThreads io(1);
    io.submit([&] { all_are_there.wait(); });
    // Each submits in turn.
    constexpr int threads = 4, rounds = 25;
    std::vector<std::unique_ptr<std::binary_semaphore>> turns;
    for (int i = 0; i < threads; ++i) turns.push_back(std::make_unique<std::binary_semaphore>(i == 0 ? 1 : 0));
    std::vector<std::thread> submitters;
    for (int i = 0; i < threads; ++i) {
      submitters.emplace_back([&, i] {
        for (int round = 0; round < rounds; ++round) {
          turns[static_cast<std::size_t>(i)]->acquire();
          io.submit([&order, number = round * threads + i] { order.push_back(number); });
          turns[static_cast<std::size_t>((i + 1) % threads)]->release();
        }
      });
    }
    for (std::thread& submitter : submitters) submitter.join();
    all_are_there.count_down();
  }
  CHECK(order.size() == 100);
  CHECK(std::ranges::is_sorted(order));
}

TEST_CASE("tasks run side by side") {
  IoThreads io(2);
  std::latch both(2);
  std::latch finished(2);
  // Each waits for the other: one thread alone would never end.
  for (int i = 0; i < 2; ++i) {
    io.submit([&] {
      both.arrive_and_wait();
      finished.count_down();
    });
  }
  finished.wait();
}

TEST_CASE("there is a processor") { CHECK(slidestream::runtime::available_processors() >= 1); }

#ifdef SLIDESTREAM_TEST_LIMITS_ADDRESS_SPACE
TEST_CASE("when a thread can't be started those before it are joined and the error reaches the caller") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  // Room for a few threads' stacks and no more.
  rlimit tight = before;
  tight.rlim_cur = address_space_in_use() + (std::size_t{64} << 20);
  REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
  CHECK_THROWS_AS(IoThreads(4096), std::system_error);
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
}
#endif
