#include "runtime/slot_pool.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

using slidestream::runtime::Slot;
using slidestream::runtime::SlotPool;

TEST_CASE("a pool hands out each slot once and refuses when all are out") {
  SlotPool pool(3, 4096);
  std::vector<Slot> held;
  std::vector<bool> seen(3, false);
  for (int i = 0; i < 3; ++i) {
    auto slot = pool.try_acquire();
    REQUIRE(slot);
    CHECK_FALSE(seen[slot->index()]);
    seen[slot->index()] = true;
    CHECK(slot->memory().size() == 4096);
    held.push_back(std::move(*slot));
  }
  CHECK(pool.checked_out() == 3);
  CHECK_FALSE(pool.try_acquire());
  held.pop_back();
  CHECK(pool.checked_out() == 2);
  CHECK(pool.try_acquire());
  CHECK(pool.checked_out() == 2);
}

TEST_CASE("a moved slot is released once") {
  int releases = 0;
  SlotPool pool(2, 64, [&] { ++releases; });
  {
    Slot a = std::move(*pool.try_acquire());
    Slot b = std::move(a);
    CHECK_FALSE(a);  // NOLINT(bugprone-use-after-move): that it is empty is the point
    Slot c = std::move(*pool.try_acquire());
    c = std::move(b);
    CHECK(releases == 1);
    c.reset();
    c.reset();
    CHECK(releases == 2);
  }
  CHECK(releases == 2);
  CHECK(pool.checked_out() == 0);
}

TEST_CASE("under many threads no slot is held twice and none is lost") {
  constexpr std::size_t slots = 4;
  SlotPool pool(slots, 64);
  std::vector<std::atomic<int>> holders(slots);
  std::atomic<bool> held_twice{false};
  std::atomic<int> acquired{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        auto slot = pool.try_acquire();
        if (!slot) {
          std::this_thread::yield();
          continue;
        }
        if (holders[slot->index()].fetch_add(1) != 0) held_twice = true;
        std::memset(slot->memory().data(), t, 64);
        ++acquired;
        holders[slot->index()].fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(held_twice);
  CHECK(acquired > 0);
  CHECK(pool.checked_out() == 0);
  std::vector<Slot> all;
  while (auto slot = pool.try_acquire()) all.push_back(std::move(*slot));
  CHECK(all.size() == slots);
}
