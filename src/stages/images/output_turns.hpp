#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "stages/run/batch.hpp"

namespace slidestream {

/// Hands free output slots to batches in the order in which they ask. One that asks for several gets all of them before
/// the next gets any: whatever waits for tiles of an earlier batch, that batch's own slots come back, and it goes on.
class OutputTurns {
 public:
  /// A batch may take a slot.
  struct Turn {
    Batch* batch = nullptr;
    std::size_t number = 0;  ///< of those that it asked for, from 0
  };

  /// `give` is called for every turn, from any thread.
  explicit OutputTurns(std::function<void(const Turn&)> give) : give_(std::move(give)) {}

  /// Thread-safe, as the next.
  void ask(Batch& batch, std::size_t slots) { go_on(0, {&batch, slots}); }
  void slot_came_back() { go_on(1, {}); }

 private:
  struct Asking {
    Batch* batch = nullptr;
    std::size_t slots = 0;
    std::size_t given = 0;
  };

  void go_on(std::size_t more_slots, const Asking& asking) {
    std::vector<Turn> turns;
    {
      const std::lock_guard lock(mutex_);
      free_ += more_slots;
      if (asking.slots > 0) asking_.push_back(asking);
      while (free_ > 0 && !asking_.empty()) {
        Asking& first = asking_.front();
        turns.push_back({first.batch, first.given});
        --free_;
        if (++first.given == first.slots) asking_.pop_front();
      }
    }
    for (const Turn& turn : turns) give_(turn);
  }

  std::function<void(const Turn&)> give_;
  std::mutex mutex_;
  std::deque<Asking> asking_;  ///< guarded by mutex_
  std::size_t free_ = 0;       ///< slots; guarded by mutex_
};

}  // namespace slidestream
