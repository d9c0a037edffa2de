#include "runtime/slot_preparation.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

using slidestream::runtime::Slot;
using slidestream::runtime::SlotPool;
using slidestream::runtime::SlotPreparation;

namespace {

constexpr std::size_t slots = 5;
constexpr std::size_t bytes = (std::size_t{16} << 20) + 4096;  // two parts a slot

}  // namespace

TEST_CASE("slots become free as they are made ready, each once, and the end is told once") {
  for (const std::size_t threads : {1U, 3U}) {
    std::atomic<std::size_t> freed{0};
    SlotPool pool(
        slots, bytes, [&] { ++freed; }, SlotPool::Start::not_ready);
    CHECK_FALSE(pool.try_acquire());
    CHECK(pool.not_ready() == slots);
    std::mutex mutex;
    std::vector<std::size_t> order;
    std::promise<void> ended;
    SlotPreparation preparation(pool, bytes, threads,
                                {{},
                                 [&](std::size_t index) {
                                   const std::lock_guard lock(mutex);
                                   order.push_back(index);
                                   std::memset(pool.memory(index).data(), static_cast<int>(index), 64);
                                 },
                                 [](const std::exception_ptr&) { FAIL("nothing fails here"); },
                                 [&] { ended.set_value(); }});
    preparation.start();
    ended.get_future().wait();
    CHECK(freed == slots);
    CHECK(pool.not_ready() == 0);
    if (threads == 1) CHECK(order == std::vector<std::size_t>{0, 1, 2, 3, 4});
    std::vector<Slot> held;
    while (auto slot = pool.try_acquire()) {
      CHECK(slot->memory()[7] == std::byte(slot->index()));
      held.push_back(std::move(*slot));
    }
    CHECK(held.size() == slots);
  }
}

TEST_CASE("after a stop no slot is begun, and those that aren't ready stay so") {
  SlotPool pool(slots, bytes, {}, SlotPool::Start::not_ready);
  std::promise<void> ended;
  SlotPreparation* self = nullptr;
  SlotPreparation preparation(pool, bytes, 1,
                              {{},
                               [&](std::size_t index) {
                                 if (index == 1) self->stop();
                               },
                               {},
                               [&] { ended.set_value(); }});
  self = &preparation;
  preparation.start();
  ended.get_future().wait();
  CHECK(pool.not_ready() == slots - 2);
  CHECK(pool.checked_out() == 0);
}

TEST_CASE("what a step throws is told, and no more slots come") {
  SlotPool pool(slots, bytes, {}, SlotPool::Start::not_ready);
  std::promise<void> ended;
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
                               [&] { ended.set_value(); }});
  preparation.start();
  ended.get_future().wait();
  CHECK(what == "no more");
  CHECK(pool.not_ready() == slots - 2);
}

TEST_CASE("a preparation that was never started calls nothing") {
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
