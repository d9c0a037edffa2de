#include "synth/workers.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace slidestream::synth {

void parallel_for(std::size_t threads, std::int64_t items, const std::function<void(std::int64_t, std::size_t)>& work) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;  // guarded by mutex
  const auto run = [&](std::size_t worker) {
    try {
      for (std::int64_t item = next++; item < items; item = next++) work(item, worker);
    } catch (...) {
      next = items;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    const auto wanted = std::min(static_cast<std::size_t>(std::max<std::int64_t>(items, 1)), threads);
    try {
      for (std::size_t worker = 1; worker < wanted; ++worker) helpers.emplace_back(run, worker);
    } catch (const std::system_error&) {
      // Those that there are do it all.
    }
    run(0);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace slidestream::synth
