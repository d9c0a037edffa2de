#include "stages/network_watch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace slidestream {

NetworkWatch::Running::Running(NetworkWatch& watch, NetworkSession& session, std::function<bool()> is_over)
    : watch_(watch), session_(session), is_over_(std::move(is_over)) {
  const std::lock_guard lock(watch_.mutex_);
  watch_.running_.push_back(this);
}

NetworkWatch::Running::~Running() {
  const std::lock_guard lock(watch_.mutex_);
  std::erase(watch_.running_, this);
  // The next batch may be one of another slide.
  session_.interrupt(false);
}

NetworkWatch::NetworkWatch(const RunContext& context, tbb::flow::graph& graph, Wake wake, std::function<void()> tick)
    : context_(context), graph_(graph), wake_(std::move(wake)), tick_(std::move(tick)), thread_([this] {
        constexpr auto pause = std::chrono::milliseconds(20);
        std::unique_lock lock(mutex_);
        while (!ended_.wait_for(lock, pause, [this] { return ends_; })) {
          lock.unlock();
          look();
          lock.lock();
        }
      }) {}

NetworkWatch::~NetworkWatch() { end(); }

void NetworkWatch::end() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void NetworkWatch::add(const std::shared_ptr<SlideImages>& images) {
  const std::lock_guard lock(mutex_);
  std::erase_if(slides_, [](const Watched& slide) { return slide.images.expired(); });
  slides_.push_back({images});
}

void NetworkWatch::look() {
  // What is held here may be let go here last, which gives the graph work: it must not come to its end meanwhile.
  graph_.reserve_wait();
  {
    std::vector<std::shared_ptr<SlideImages>> over;
    std::vector<std::shared_ptr<SlideImages>> held;
    {
      const std::lock_guard lock(mutex_);
      for (Watched& slide : slides_) {
        if (slide.woken) continue;
        auto images = slide.images.lock();
        if (images == nullptr) continue;
        slide.woken = is_over(*images);
        (slide.woken ? over : held).push_back(std::move(images));
      }
      for (Running* running : running_) {
        if (running->is_over_()) running->session_.interrupt(true);
      }
    }
    for (const auto& images : over) wake_(images);
    tick_();
  }
  graph_.release_wait();
}

}  // namespace slidestream
