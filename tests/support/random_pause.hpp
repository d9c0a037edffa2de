#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace slidestream::test {

/// Sleeps a moment, at most 2 ms and another each time, so that threads meet in another order. $SLIDESTREAM_TEST_SEED
/// is where the row of moments begins.
inline void random_pause() {
  static std::atomic<std::uint32_t> calls = [] {
    const char* seed = std::getenv("SLIDESTREAM_TEST_SEED");
    return seed == nullptr ? 1U : static_cast<std::uint32_t>(std::atoi(seed)) * 7919U + 1U;
  }();
  const std::uint32_t mixed = calls++ * 2654435769U;
  std::this_thread::sleep_for(std::chrono::microseconds(mixed >> 21));
}

}  // namespace slidestream::test
