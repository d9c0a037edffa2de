#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/cuda/shared_memory.hpp"

using slidestream::runtime::cuda::SharedMemoryAllowance;

namespace {

/// Stands for kernels: their addresses alone count.
const int kernels[2] = {};

}  // namespace

TEST_CASE("what a kernel may have never shrinks, whichever thread asks for how much") {
  SharedMemoryAllowance allowance;
  std::atomic<std::size_t> set = 0;
  std::atomic<int> too_few = 0;
  std::vector<std::thread> threads;
  for (std::size_t bytes : {100, 200, 50, 400}) {
    threads.emplace_back([&, bytes] {
      for (int i = 0; i < 1000; ++i) {
        allowance.allow(kernels, 0, bytes, [&](std::size_t most) { set = most; });
        // A launch.
        if (set < bytes) ++too_few;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(too_few == 0);
  CHECK(set == 400);
}

TEST_CASE("what one kernel or device has is not another's, and what a device refuses isn't asked for again") {
  SharedMemoryAllowance allowance;
  std::size_t set = 0;
  const auto keep = [&](std::size_t most) { set = most; };
  const auto refuse = [](std::size_t) { throw std::runtime_error("more than the device has"); };
  allowance.allow(&kernels[0], 0, 300, keep);
  allowance.allow(&kernels[1], 0, 100, keep);
  CHECK(set == 100);
  allowance.allow(&kernels[0], 1, 200, keep);
  CHECK(set == 200);
  CHECK_THROWS_AS(allowance.allow(&kernels[0], 0, 1000, refuse), std::runtime_error);
  allowance.allow(&kernels[0], 0, 10, keep);
  CHECK(set == 300);
}
