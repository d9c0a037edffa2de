#include "runtime/staging_ring.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using slidestream::runtime::StagingRing;

namespace {

constexpr std::size_t chunk_bytes = 4096;

/// Copies that end when a test says so, and fail when it says so.
struct HeldCopies final : StagingRing::Copies {
  explicit HeldCopies(std::size_t chunks) : ended(chunks, false) {}

  bool has_ended(std::size_t chunk) override {
    const std::lock_guard lock(mutex);
    if (fails) throw std::runtime_error("the device is lost");
    return ended[chunk];
  }
  void wait_for(std::size_t chunk) override {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return fails || ended[chunk]; });
    if (fails) throw std::runtime_error("the device is lost");
    waited.push_back(chunk);
  }
  void end(std::size_t chunk) {
    const std::lock_guard lock(mutex);
    ended[chunk] = true;
    changed.notify_all();
  }
  void fail() {
    const std::lock_guard lock(mutex);
    fails = true;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> ended;
  std::vector<std::size_t> waited;
  bool fails = false;
};

struct Held {
  explicit Held(std::size_t chunks) : copies(chunks), memory(chunks * chunk_bytes), ring(memory, chunk_bytes, copies) {}
  HeldCopies copies;
  std::vector<std::byte> memory;
  StagingRing ring;
};

}  // namespace

TEST_CASE("a ring hands out each chunk once and refuses when all are out") {
  Held held(3);
  CHECK(held.ring.size() == 3);
  CHECK(held.ring.chunk_bytes() == chunk_bytes);
  std::vector<StagingRing::Chunk> chunks;
  std::vector<bool> seen(3, false);
  for (int i = 0; i < 3; ++i) {
    auto chunk = held.ring.try_acquire();
    REQUIRE(chunk);
    CHECK_FALSE(seen[chunk->index()]);
    seen[chunk->index()] = true;
    CHECK(chunk->memory().size() == chunk_bytes);
    CHECK(chunk->memory().data() == held.memory.data() + chunk->index() * chunk_bytes);
    chunks.push_back(std::move(*chunk));
  }
  CHECK_FALSE(held.ring.try_acquire());
  chunks.pop_back();
  CHECK(held.ring.try_acquire());
}

TEST_CASE("the chunk that was given back last is filled next: it is in a cache") {
  Held held(4);
  StagingRing::Chunk first = std::move(*held.ring.try_acquire());
  StagingRing::Chunk second = std::move(*held.ring.try_acquire());
  const std::size_t last = first.index();
  second.reset();
  first.reset();
  CHECK(held.ring.try_acquire()->index() == last);
}

TEST_CASE("a chunk whose copy is under way is free when it has ended") {
  Held held(1);
  held.ring.leave(std::move(*held.ring.try_acquire()));
  CHECK_FALSE(held.ring.try_acquire());
  std::atomic<bool> got{false};
  std::thread waiting([&] {
    const auto chunk = held.ring.acquire();
    got = chunk.has_value();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(got);
  held.copies.end(0);
  waiting.join();
  CHECK(got);
  CHECK(held.ring.try_acquire());
}

TEST_CASE("whoever waits has the chunk that was left first") {
  Held held(3);
  std::vector<std::size_t> left;
  for (int i = 0; i < 3; ++i) {
    auto chunk = held.ring.try_acquire();
    left.push_back(chunk->index());
    held.ring.leave(std::move(*chunk));
  }
  std::thread ending([&] {
    for (const std::size_t index : left) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      held.copies.end(index);
    }
  });
  std::vector<StagingRing::Chunk> chunks;
  for (const std::size_t index : left) {
    chunks.push_back(std::move(*held.ring.acquire()));
    CHECK(chunks.back().index() == index);
  }
  ending.join();
}

TEST_CASE("a thread takes turns with two chunks: they are in its core's caches") {
  Held held(4);
  std::vector<std::size_t> own;
  for (int i = 0; i < 2; ++i) {
    auto chunk = held.ring.acquire();
    own.push_back(chunk->index());
    held.ring.leave(std::move(*chunk));
  }
  // Another thread takes what is free, and doesn't wait.
  std::thread([&] {
    const auto chunk = held.ring.acquire();
    CHECK(std::ranges::find(own, chunk->index()) == own.end());
  }).join();
  for (int i = 0; i < 6; ++i) {
    const std::size_t oldest = own[static_cast<std::size_t>(i % 2)];
    held.copies.end(oldest);
    auto chunk = held.ring.acquire();
    CHECK(chunk->index() == oldest);
    held.copies.ended[oldest] = false;
    held.ring.leave(std::move(*chunk));
  }
  // Others' chunks are taken where none is free.
  held.copies.end(own[0]);
  std::thread([&] {
    std::vector<StagingRing::Chunk> chunks;
    for (int i = 0; i < 3; ++i) chunks.push_back(std::move(*held.ring.acquire()));
    CHECK(chunks.back().index() == own[0]);
  }).join();
}

TEST_CASE("chunks that have ended are taken back without anybody waiting") {
  Held held(2);
  StagingRing::Chunk first = std::move(*held.ring.try_acquire());
  StagingRing::Chunk second = std::move(*held.ring.try_acquire());
  held.copies.end(first.index());
  held.copies.end(second.index());
  held.ring.leave(std::move(first));
  held.ring.leave(std::move(second));
  held.ring.reclaim();
  first = std::move(*held.ring.try_acquire());
  second = std::move(*held.ring.try_acquire());
  CHECK(held.copies.waited.empty());
}

TEST_CASE("a wait for chunks that others fill ends when somebody gives up") {
  Held held(1);
  const auto taken = held.ring.try_acquire();
  std::atomic<bool> stop{false};
  std::atomic<bool> none{false};
  std::thread waiting([&] { none = !held.ring.acquire([&] { return stop.load(); }).has_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(none);
  stop = true;
  waiting.join();
  CHECK(none);
}

TEST_CASE("what a copy fails with comes out of the ring, every time, and no chunk is lost") {
  Held held(2);
  held.ring.leave(std::move(*held.ring.try_acquire()));
  const auto kept = held.ring.try_acquire();
  std::thread failing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    held.copies.fail();
  });
  CHECK_THROWS_WITH(held.ring.acquire(), "the device is lost");
  failing.join();
  CHECK_THROWS_WITH(held.ring.acquire(), "the device is lost");
  CHECK_THROWS_WITH(held.ring.try_acquire(), "the device is lost");
  CHECK_THROWS_WITH(held.ring.reclaim(), "the device is lost");
}

TEST_CASE("under many threads no chunk is filled while it is filled or copied") {
  constexpr std::size_t chunks = 5;
  Held held(chunks);
  std::vector<std::atomic<int>> users(chunks);
  std::atomic<bool> twice{false};
  std::atomic<int> filled{0};
  std::mutex mutex;
  std::vector<std::size_t> copying;
  std::atomic<bool> done{false};
  std::thread device([&] {
    while (true) {
      std::vector<std::size_t> now;
      {
        const std::lock_guard lock(mutex);
        now.swap(copying);
      }
      if (now.empty() && done) return;
      for (const std::size_t chunk : now) {
        --users[chunk];
        held.copies.end(chunk);
      }
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 400; ++i) {
        auto chunk = held.ring.acquire();
        const std::size_t index = chunk->index();
        if (++users[index] != 1) twice = true;
        std::memset(chunk->memory().data(), t, chunk->memory().size());
        ++filled;
        if (i % 7 == 0) {
          --users[index];
          continue;
        }
        {
          const std::lock_guard lock(held.copies.mutex);
          held.copies.ended[index] = false;
        }
        {
          const std::lock_guard lock(mutex);
          copying.push_back(index);
        }
        held.ring.leave(std::move(*chunk));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  device.join();
  CHECK_FALSE(twice);
  CHECK(filled == 8 * 400);
}
