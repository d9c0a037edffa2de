#include "runtime/startable_threads.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace slidestream::runtime {

namespace {

/// Waits until the kernel counts ended threads no more: a join returns a moment earlier.
void wait_until_gone(const std::vector<pid_t>& threads) {
  constexpr int most_waits = 1000;
  int waits = 0;
  for (const pid_t thread : threads) {
    const std::string entry = "/proc/self/task/" + std::to_string(thread);
    for (; waits < most_waits && ::access(entry.c_str(), F_OK) == 0; ++waits) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace

std::size_t startable_threads(std::size_t wanted) noexcept {
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  std::vector<pid_t> numbers;
  try {
    threads.reserve(wanted);
    numbers.resize(wanted);
    while (threads.size() < wanted) {
      pid_t& number = numbers[threads.size()];
      threads.emplace_back([&over, &number] {
        number = ::gettid();
        over.wait(false);
      });
    }
  } catch (const std::exception&) {
    // This one can't be had.
  }
  over.store(true);
  over.notify_all();
  for (std::thread& thread : threads) thread.join();
  try {
    numbers.resize(threads.size());
    wait_until_gone(numbers);
  } catch (const std::exception&) {
    // No memory for a name.
  }
  return threads.size();
}

}  // namespace slidestream::runtime
