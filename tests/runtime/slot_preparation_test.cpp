#include "runtime/slot_preparation.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using slidestream::runtime::HostMemory;
using slidestream::runtime::Slot;
using slidestream::runtime::SlotPool;
using slidestream::runtime::SlotPreparation;

namespace {

constexpr std::size_t slots = 5;
constexpr std::size_t bytes = (std::size_t{4} << 20) + 4096;  // two parts a slot

/// Pages of `memory` that the system has given.
std::size_t pages_there(std::span<std::byte> memory) {
  std::vector<unsigned char> resident(memory.size() / 4096);
  REQUIRE(mincore(memory.data(), memory.size(), resident.data()) == 0);
  return static_cast<std::size_t>(std::ranges::count_if(resident, [](unsigned char page) { return (page & 1) == 1; }));
}

}  // namespace

TEST_CASE("slots become free as they are asked for, in their order, each once") {
  for (const std::size_t threads : {1U, 3U}) {
    std::atomic<std::size_t> freed{0};
    SlotPool pool(
        slots, bytes, [&] { ++freed; }, SlotPool::Start::not_ready);
    CHECK_FALSE(pool.try_acquire());
    CHECK(pool.not_ready() == slots);
    std::mutex mutex;
    std::vector<std::size_t> order;
    std::counting_semaphore<slots + 1> settled{0};
    SlotPreparation preparation(pool, bytes, threads,
                                {{},
                                 [&](std::size_t index) {
                                   const std::lock_guard lock(mutex);
                                   order.push_back(index);
                                   std::memset(pool.memory(index).data(), static_cast<int>(index), 64);
                                 },
                                 [](const std::exception_ptr&) { FAIL("nothing fails here"); },
                                 [&] { settled.release(); }});
    for (std::size_t wanted = 1; wanted <= slots; ++wanted) {
      CHECK(preparation.want());
      settled.acquire();
      CHECK(freed == wanted);
      CHECK(pool.not_ready() == slots - wanted);
    }
    CHECK_FALSE(preparation.want());
    CHECK(order == std::vector<std::size_t>{0, 1, 2, 3, 4});
    std::vector<Slot> held;
    while (auto slot = pool.try_acquire()) {
      CHECK(slot->memory()[7] == std::byte(slot->index()));
      held.push_back(std::move(*slot));
    }
    CHECK(held.size() == slots);
    CHECK_FALSE(settled.try_acquire());
  }
}

TEST_CASE("several slots may be asked for at a time") {
  SlotPool pool(slots, bytes, {}, SlotPool::Start::not_ready);
  std::counting_semaphore<slots + 1> settled{0};
  SlotPreparation preparation(pool, bytes, 3, {{}, {}, {}, [&] { settled.release(); }});
  while (preparation.want()) {
  }
  for (std::size_t i = 0; i < slots; ++i) settled.acquire();
  CHECK(pool.not_ready() == 0);
}

TEST_CASE("after a stop no slot is begun, and all that were asked for are settled") {
  SlotPool pool(slots, bytes, {}, SlotPool::Start::not_ready);
  std::counting_semaphore<slots + 1> settled{0};
  SlotPreparation* self = nullptr;
  SlotPreparation preparation(pool, bytes, 1,
                              {{},
                               [&](std::size_t index) {
                                 if (index == 1) self->stop();
                               },
                               {},
                               [&] { settled.release(); }});
  self = &preparation;
  int wanted = 0;
  for (; wanted < 4 && preparation.want(); ++wanted) {
  }
  for (int i = 0; i < wanted; ++i) settled.acquire();
  CHECK_FALSE(preparation.want());
  CHECK_FALSE(settled.try_acquire());
  CHECK(pool.not_ready() == slots - 2);
  CHECK(pool.checked_out() == 0);
}

TEST_CASE("what a step throws is told, and no more slots come") {
  SlotPool pool(slots, bytes, {}, SlotPool::Start::not_ready);
  std::counting_semaphore<slots + 1> settled{0};
  std::string what;
  SlotPreparation preparation(pool, bytes, 1,
                              {{},
                               [](std::size_t index) {
                                 if (index == 2) throw std::runtime_error("no more");
                               },
                               [&](const std::exception_ptr& failure) {
                                 try {
                                   std::rethrow_exception(failure);
                                 } catch (const std::exception& error) {
                                   what = error.what();
                                 }
                               },
                               [&] { settled.release(); }});
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(preparation.want());
    settled.acquire();
  }
  CHECK(what == "no more");
  CHECK_FALSE(preparation.want());
  CHECK(pool.not_ready() == slots - 2);
}

TEST_CASE("a preparation that is asked for nothing calls nothing") {
  SlotPool pool(slots, bytes, {}, SlotPool::Start::not_ready);
  std::atomic<int> calls{0};
  {
    const SlotPreparation preparation(pool, bytes, 2,
                                      {[&] { ++calls; }, [&](std::size_t) { ++calls; },
                                       [&](const std::exception_ptr&) { ++calls; }, [&] { ++calls; }});
  }
  CHECK(calls == 0);
  CHECK(pool.not_ready() == slots);
}

TEST_CASE("with a slot's front the memory besides it is taken, and what was taken ahead isn't again") {
  std::vector<HostMemory> ahead;
  ahead.emplace_back(bytes);
  ahead.back().set_taken(bytes);
  const std::span<std::byte> never_taken = ahead.back().bytes();
  SlotPool pool(2, bytes, {}, SlotPool::Start::not_ready, std::move(ahead));
  std::vector<HostMemory> besides;
  for (std::size_t i = 0; i < 2; ++i) besides.emplace_back(bytes);
  std::counting_semaphore<2> settled{0};
  SlotPreparation preparation(
      pool, bytes, 2,
      {{}, {}, {}, [&] { settled.release(); }, [&](std::size_t index) { return besides[index].bytes(); }});
  REQUIRE(preparation.want());
  settled.acquire();
  CHECK(pages_there(besides[0].bytes()) == bytes / 4096);
  CHECK(pages_there(never_taken) == 0);
  CHECK(pages_there(besides[1].bytes()) == 0);
  REQUIRE(preparation.want());
  settled.acquire();
  CHECK(pages_there(besides[1].bytes()) == bytes / 4096);
  CHECK(pages_there(pool.memory(1)) == bytes / 4096);
}

TEST_CASE("memory that is taken ahead has the pages of its front") {
  constexpr std::size_t front = std::size_t{6} << 20;
  const std::vector<HostMemory> blocks = slidestream::runtime::take_ahead(3, 4 * front, front, 2, -1);
  REQUIRE(blocks.size() == 3);
  for (const HostMemory& block : blocks) {
    CHECK(block.taken() == front);
    CHECK(pages_there(block.bytes().first(front)) == front / 4096);
    CHECK(pages_there(block.bytes().subspan(front)) == 0);
  }
}

TEST_CASE("blocks that were taken ahead become the first slots, those of another size don't") {
  std::vector<HostMemory> ahead;
  ahead.emplace_back(bytes / 2);
  ahead.emplace_back(bytes);
  ahead.back().bytes()[5] = std::byte{9};
  ahead.back().set_taken(bytes);
  SlotPool pool(slots, bytes, {}, SlotPool::Start::not_ready, std::move(ahead));
  CHECK(pool.size() == slots);
  CHECK(pool.taken(0) == bytes);
  CHECK(pool.memory(0)[5] == std::byte{9});
  for (std::size_t i = 1; i < slots; ++i) {
    CHECK(pool.taken(i) == 0);
    CHECK(pool.memory(i).size() == bytes);
  }
}
