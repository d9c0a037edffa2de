#pragma once

#include <oneapi/tbb/flow_graph.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/handoff.hpp"

namespace slidestream {

/// Has the graph's threads help one of them with work that is many equal parts.
class Helpers {
 public:
  Helpers(tbb::flow::graph& graph, runtime::GraphLifetime& lifetime, int threads)
      : most_(static_cast<std::size_t>(threads)),
        help_(
            graph, tbb::flow::unlimited,
            [&lifetime](const std::shared_ptr<Parts>& parts) {
              const runtime::GraphLifetime::Body body(lifetime);
              parts->help();
              return tbb::flow::continue_msg();
            },
            tbb::flow::node_priority_t{4}) {}

  /// Calls `work(i)`, which doesn't throw, for each of [0, count), and returns when all are done. Called in the graph.
  /// It works along, and waits in the end for parts that others have begun: for threads at work, never for tasks.
  void for_all(std::size_t count, const std::function<void(std::size_t)>& work) {
    if (count == 0) return;
    const auto parts = std::make_shared<Parts>(count, work);
    parts->next.store(0, std::memory_order_release);
    for (std::size_t i = 1; i < std::min(count, most_); ++i) help_.try_put(parts);
    parts->help();
    for (std::size_t left = parts->left.load(std::memory_order_acquire); left != 0;
         left = parts->left.load(std::memory_order_acquire)) {
      parts->left.wait(left, std::memory_order_acquire);
    }
  }

 private:
  struct Parts {
    Parts(std::size_t count_of, const std::function<void(std::size_t)>& of) : count(count_of), work(of), left(count) {}

    /// Who comes late finds nothing left, and doesn't touch `work`, which is gone then.
    void help() {
      for (std::size_t i = next.fetch_add(1, std::memory_order_acq_rel); i < count;
           i = next.fetch_add(1, std::memory_order_acq_rel)) {
        work(i);
        if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_all();
      }
    }

    const std::size_t count;
    const std::function<void(std::size_t)>& work;
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> left;
  };

  std::size_t most_;
  tbb::flow::function_node<std::shared_ptr<Parts>> help_;
};

}  // namespace slidestream
