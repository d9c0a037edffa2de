#include "stages/delivery.hpp"

#include <memory>
#include <utility>

namespace slidestream {

Delivery::Delivery(std::size_t slides, std::size_t lanes, Callers callers,
                   std::function<void(std::exception_ptr)> on_error, tbb::flow::graph& graph,
                   runtime::GraphLifetime& lifetime)
    : most_waiting_(most_waiting(lanes)),
      callers_(std::move(callers)),
      on_error_(std::move(on_error)),
      graph_(graph),
      lifetime_(lifetime),
      finished_(slides),
      thread_(1) {}

void Delivery::put(SlideResult&& result, std::size_t index, runtime::Slot slot) {
  const auto waiting = std::make_shared<Waiting>();
  waiting->result = std::move(result);
  waiting->index = index;
  if (waiting_.fetch_add(1, std::memory_order_relaxed) >= most_waiting_) waiting->slot = std::move(slot);
  waiting->handoff.give();
  // Without this the graph could be idle, and the run at its end, while all slots wait here.
  graph_.reserve_wait();
  try {
    thread_.submit([this, waiting] {
      {
        const runtime::GraphLifetime::Body body(lifetime_);
        hand_over(*waiting);
      }
      graph_.release_wait();
    });
  } catch (...) {
    graph_.release_wait();
    throw;
  }
}

void Delivery::wait_for_room() {
  std::unique_lock lock(mutex_);
  handed_over_.wait(lock, [this] { return waiting_.load(std::memory_order_relaxed) < most_waiting_; });
}

void Delivery::hand_over(Waiting& waiting) noexcept {
  waiting.handoff.take();
  SlideResult& result = waiting.result;
  try {
    if (callers_.on_slide) callers_.on_slide(result);
  } catch (...) {
    on_error_(std::current_exception());
  }
  ++(result.done ? done_now_ : failed_now_);
  {
    const std::lock_guard lock(mutex_);
    finished_[waiting.index] = std::move(result);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  handed_over_.notify_all();
  waiting.slot.reset();
  pause_when_none_waits();
}

void Delivery::pause_when_none_waits() noexcept {
  if (done_now_ + failed_now_ < most_put_off && waiting_.load(std::memory_order_relaxed) > 0) return;
  try {
    if (callers_.on_pause) callers_.on_pause();
  } catch (...) {
    on_error_(std::current_exception());
  }
  done_.fetch_add(std::exchange(done_now_, 0), std::memory_order_relaxed);
  failed_.fetch_add(std::exchange(failed_now_, 0), std::memory_order_relaxed);
}

void Delivery::finish(RunResult& result) {
  const std::lock_guard lock(mutex_);
  for (std::optional<SlideResult>& slide : finished_) {
    if (slide) result.slides.push_back(std::move(*slide));
  }
}

}  // namespace slidestream
