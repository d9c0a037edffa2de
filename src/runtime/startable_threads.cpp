#include "runtime/startable_threads.hpp"

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace slidestream::runtime {

std::size_t startable_threads(std::size_t wanted) noexcept {
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  try {
    threads.reserve(wanted);
    while (threads.size() < wanted) threads.emplace_back([&over] { over.wait(false); });
  } catch (const std::exception&) {
    // This one can't be had.
  }
  over.store(true);
  over.notify_all();
  for (std::thread& thread : threads) thread.join();
  return threads.size();
}

}  // namespace slidestream::runtime
