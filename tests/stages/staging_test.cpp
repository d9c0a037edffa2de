// The pinned rings, with GPUs that are made up.
#include "runtime/cuda/staging.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "support/fake_cuda/fake_cuda.hpp"

using namespace slidestream;
using runtime::StagingRing;
using runtime::cuda::DeviceMemory;
using runtime::cuda::DeviceScope;
using runtime::cuda::Event;
using runtime::cuda::Staging;
using runtime::cuda::Stream;

namespace {

constexpr std::size_t chunk_bytes = 8192;

std::byte value_of(std::size_t at) { return static_cast<std::byte>(at % 251); }

/// A ring of one device, and what is copied there.
struct Ring {
  Ring(int device, std::size_t chunks, std::size_t bytes)
      : scope(device),
        memory(bytes),
        staging(chunks, chunk_bytes, device, -1, [this](std::chrono::nanoseconds) { ++copied; }) {}

  /// Some bytes from `at` on, by way of a chunk.
  void send(int device, std::size_t at, std::size_t bytes) {
    const DeviceScope here(device);
    auto chunk = staging.ring().acquire();
    for (std::size_t i = 0; i < bytes; ++i) chunk->memory()[i + 16] = value_of(at + i);
    staging.copy(std::move(*chunk), memory.bytes().data() + at, 16, bytes);
  }

  DeviceScope scope;
  std::atomic<int> copied{0};
  DeviceMemory memory;
  Staging staging;
  Stream stream;
  Event sent;
};

bool is_right(const DeviceMemory& memory) {
  // Memory of a made-up device is the host's.
  for (std::size_t i = 0; i < memory.bytes().size(); ++i) {
    if (memory.bytes()[i] != value_of(i)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("what several threads send by small rings arrives on each of several devices") {
  test::fake_dawdle(true);
  {
    constexpr std::size_t parts = 120;
    constexpr std::size_t bytes = 5000;
    std::vector<std::unique_ptr<Ring>> rings;
    for (int device = 0; device < 2; ++device) rings.push_back(std::make_unique<Ring>(device, 3, parts * bytes));
    CHECK(test::fake_pinned() == 2);
    std::vector<std::thread> threads;
    std::vector<std::atomic<std::size_t>> next(2);
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        const auto device = static_cast<std::size_t>(t % 2);
        for (std::size_t part = next[device]++; part < parts; part = next[device]++) {
          rings[device]->send(t % 2, part * bytes, bytes);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& ring : rings) {
      // A stream that waits for the event has all of them.
      ring->staging.record(ring->sent.get());
      cudaStreamWaitEvent(ring->stream.get(), ring->sent.get());
      cudaStreamSynchronize(ring->stream.get());
      CHECK(is_right(ring->memory));
      ring->staging.ring().reclaim();
      // Each copy was timed once.
      CHECK(ring->copied == static_cast<int>(parts));
    }
  }
  test::fake_dawdle(false);
  CHECK(test::fake_pinned() == 0);
}

TEST_CASE("rows go to their places, a pitch apart") {
  Ring ring(0, 2, 64 * 40);
  std::memset(ring.memory.bytes().data(), 0, ring.memory.bytes().size());
  auto chunk = ring.staging.ring().acquire();
  for (std::size_t i = 0; i < 10 * 24; ++i) chunk->memory()[i] = value_of(i);
  ring.staging.copy_rows(std::move(*chunk), {ring.memory.bytes().data() + 64, 64, 24, 10}, ring.stream.get());
  cudaStreamSynchronize(ring.stream.get());
  bool right = true;
  for (std::size_t i = 0; i < ring.memory.bytes().size(); ++i) {
    const std::size_t row = i / 64;
    const bool is_row = row >= 1 && row < 11 && i % 64 < 24;
    right = right && ring.memory.bytes()[i] == (is_row ? value_of((row - 1) * 24 + i % 64) : std::byte{0});
  }
  CHECK(right);
}

TEST_CASE("a device that fails is told to whoever uses its ring, and chunks that aren't copied come back") {
  for (const test::FakeFailure failure : {test::FakeFailure::once, test::FakeFailure::for_ever}) {
    // The first event, the copy, and the second event.
    for (const int number : {1, 2, 3}) {
      CAPTURE(number);
      Ring ring(0, 1, 100);
      const DeviceScope here(0);
      auto chunk = ring.staging.ring().acquire();
      test::fake_fail_call(number - 1, failure);
      CHECK_THROWS_AS(ring.staging.copy(std::move(*chunk), ring.memory.bytes().data(), 0, 100), CudaError);
      test::fake_recover();
      CHECK(chunk);
      chunk->reset();
      CHECK(ring.staging.ring().try_acquire());
    }
  }
  Ring ring(0, 1, 100);
  ring.send(0, 0, 100);
  test::fake_fail_call(0, test::FakeFailure::for_ever);
  CHECK_THROWS_AS(ring.staging.ring().acquire(), CudaError);
  test::fake_recover();
  CHECK(ring.staging.ring().acquire());
}
