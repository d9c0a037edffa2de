#pragma once

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <cstddef>

#include "runtime/handoff.hpp"

namespace slidestream {

/// Calls `work(i)` for each of [0, count), which doesn't throw, on the graph's threads, and returns when all are done.
/// This thread does nothing else meanwhile.
template <class Work>
void for_all(std::size_t count, const Work& work) {
  if (count == 0) return;
  if (count == 1) {
    work(std::size_t{0});
    return;
  }
  runtime::Handoff begun;
  runtime::Handoff done;
  begun.give();
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
      begun.take();
      work(i);
      done.give();
    });
  });
  done.take();
}

}  // namespace slidestream
