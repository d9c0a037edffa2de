#include "runtime/io_threads.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <latch>

#include "runtime/machine.hpp"

using slidestream::runtime::IoThreads;

TEST_CASE("everything submitted runs before the threads are gone") {
  std::atomic<int> done{0};
  {
    IoThreads io(3);
    for (int i = 0; i < 100; ++i) io.submit([&] { ++done; });
  }
  CHECK(done == 100);
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
