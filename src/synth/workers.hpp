#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

/// \file
/// A loop over independent pieces of work.

namespace slidestream::synth {

/// Calls `work(item, worker)` once for every item in [0, items) from `threads` threads; `worker` < `threads` is the
/// calling thread's own number. The first exception ends the loop and is thrown here.
void parallel_for(std::size_t threads, std::int64_t items, const std::function<void(std::int64_t, std::size_t)>& work);

}  // namespace slidestream::synth
