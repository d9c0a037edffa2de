#pragma once

#include <cstddef>
#include <future>
#include <system_error>
#include <vector>

/// \file
/// Work on threads of its own, where the system has some.

namespace slidestream {

/// Does the work on a thread of its own; where the system has none left, when its result is asked for. It has ended
/// when the result that is returned is gone.
template <class Work>
auto in_background(const Work& work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

/// Calls `work` on so many threads at once, this one among them. The first exception is thrown here when all are done.
template <class Work>
void at_once(std::size_t threads, const Work& work) {
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < threads; ++i) others.push_back(in_background([&work] { work(); }));
  work();
  for (std::future<void>& other : others) other.get();
}

}  // namespace slidestream
