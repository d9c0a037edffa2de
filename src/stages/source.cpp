#include "stages/source.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "stages/range_payload.hpp"
#include "stages/slide_opener.hpp"

namespace slidestream {
namespace {

class Source final : public SourceStage {
 public:
  Source(RunContext& context, const std::vector<std::string>& slides, const RunControl& control, runtime::IoThreads& io)
      : context_(context),
        slides_(slides),
        control_(control),
        opener_(context, slides, control),
        io_(io),
        lanes_(context.lanes) {
    open_ahead();
  }

  ~Source() override {
    // The openers refer to this object.
    std::unique_lock lock(ahead_mutex_);
    ahead_changed_.wait(lock, [this] { return std::ranges::all_of(ahead_, &Opening::is_over); });
  }

  bool next(StripMessage& message, std::size_t lane) override {
    Sending* sending = choose(lane);
    if (sending == nullptr) return false;
    SlideRun& slide = *sending->slide;
    Chain& chain = *sending->chain;
    const std::size_t strip = chain.plan.first_strip + sending->next_strip;
    const runtime::StageMeter::Busy busy(context_.source, payload_of(slide, strip));
    if (strip > 0) {
      if (control_.stop_requested()) slide.abandoned.store(true);
      try {
        context_.check_fault("source", slide, strip);
      } catch (...) {
        slide.fail("source", current_cause(slide.path), {strip, 0});
      }
    }
    message.slide = sending->slide;
    message.chain = &chain;
    message.strip_index = strip;
    const bool nothing = chain.plan.strips == 0;  // no operator reads pixels, or the slide can't be opened
    message.empty = nothing || slide.failed_before({strip, SlideRun::all_items}) || slide.abandoned.load();
    message.last = message.empty || ++sending->next_strip == chain.plan.strips;
    ++chain.strips_sent;
    if (!slide.decode_on_device) ++context_.lane_loads[lane].decoded_on_cpu;
    if (message.last && !message.empty) --slide.chains_to_send;
    if (message.last) *sending = {};
    context_.source.add(1, 0);
    return true;
  }

 private:
  /// What a lane is sending.
  struct Sending {
    std::shared_ptr<SlideRun> slide;
    Chain* chain = nullptr;
    std::size_t next_strip = 0;  ///< in the chain
  };
  /// A lane of a GPU sends slides that the GPU decodes and slides that the CPU decodes side by side, so that a mixed
  /// archive keeps both busy.
  struct LaneSending {
    Sending on_device;
    Sending on_cpu;
  };
  /// A slide with chains that no lane has taken.
  struct Opened {
    std::shared_ptr<SlideRun> slide;
    std::size_t next_chain = 0;
    std::vector<const Chain*> taken;  ///< by lane: the chain that it took last
  };
  enum class Taken { chain, nothing, left_to_others };

  /// A slide that is being opened. Guarded by `ahead_mutex_`.
  struct Opening {
    std::shared_ptr<SlideRun> slide;  ///< null: not yet, or it was put off
    bool is_over = false;
    runtime::Clock::time_point begin = runtime::Clock::now();

    /// Others needn't wait for it any longer.
    bool is_slow() const { return !is_over && runtime::Clock::now() - begin > std::chrono::milliseconds(200); }
  };

  /// What the lane sends next; null when there is nothing. Waits while it leaves what is there to other lanes.
  Sending* choose(std::size_t lane) {
    constexpr auto between_looks = std::chrono::microseconds(200);
    while (true) {
      Sending* sending = nullptr;
      if (look(lane, sending) != Taken::left_to_others) return sending;
      std::this_thread::sleep_for(between_looks);
    }
  }

  /// Chooses once. Batches that the CPU decodes get half of the slots, and the others as well when the GPU has nothing
  /// to decode.
  Taken look(std::size_t lane, Sending*& chosen) {
    LaneSending& sending = lanes_[lane];
    const std::size_t half = (static_cast<std::size_t>(context_.config.pipeline.queue_depth) + 1) / 2;
    const bool cpu_first = context_.gpus == nullptr || context_.lane_loads[lane].decoded_on_cpu.load() < half;
    Sending& preferred = cpu_first ? sending.on_cpu : sending.on_device;
    Sending& other = cpu_first ? sending.on_device : sending.on_cpu;
    chosen = &preferred;
    if (preferred.slide != nullptr) return Taken::chain;
    // One lock for both: chains that other lanes take in between could make a lane believe that nothing is left. Who
    // has something to send doesn't wait for it: whoever holds it may be waiting for a slide to be opened.
    std::unique_lock lock(mutex_, std::defer_lock);
    if (other.slide == nullptr) {
      lock.lock();
    } else if (!lock.try_lock()) {
      chosen = &other;
      return Taken::chain;
    }
    const Taken first = take_chain(preferred, lane, !cpu_first, other.slide == nullptr);
    if (first == Taken::chain) return first;
    chosen = &other;
    if (other.slide != nullptr) return Taken::chain;
    const Taken second = take_chain(other, lane, cpu_first, true);
    if (second == Taken::chain) return second;
    chosen = nullptr;
    return first == Taken::left_to_others ? first : second;
  }

  /// The next chain that no lane has taken, of slides that are decoded as asked for. Under the lock. It waits for a
  /// slide that is being opened when it may, and when there is no other.
  Taken take_chain(Sending& sending, std::size_t lane, bool on_device, bool may_wait) {
    if (control_.stop_requested()) return Taken::nothing;
    Taken taken = Taken::nothing;
    for (std::size_t i = 0;; ++i) {
      if (i == opened_.size()) {
        if (opened_.size() == most_opened) return taken;
        const std::shared_ptr<SlideRun> opened = next_opened(may_wait && opened_.empty());
        if (opened == nullptr) return taken;
        opened_.push_back({opened, 0, std::vector<const Chain*>(context_.lanes)});
      }
      Opened& opened = opened_[i];
      if (opened.slide->decode_on_device != on_device) continue;
      if (is_left_to_others(opened.taken, lane)) {
        taken = Taken::left_to_others;
        continue;
      }
      sending = {opened.slide, &opened.slide->chains[opened.next_chain], 0};
      opened.taken[lane] = sending.chain;
      if (++opened.next_chain == opened.slide->chains.size()) {
        opened_.erase(opened_.begin() + static_cast<std::ptrdiff_t>(i));
      }
      return Taken::chain;
    }
  }

  /// The next slide that is open; null when there is none, or the caller doesn't wait. Slides come in their order, but
  /// one that takes long to open lets others go first.
  std::shared_ptr<SlideRun> next_opened(bool wait) {
    constexpr auto between_looks = std::chrono::milliseconds(20);
    while (true) {
      open_ahead();
      std::unique_lock lock(ahead_mutex_);
      const auto next = std::ranges::find_if(ahead_, [](const Opening& opening) { return !opening.is_slow(); });
      if (next != ahead_.end() && next->is_over) {
        std::shared_ptr<SlideRun> slide = std::move(next->slide);
        ahead_.erase(next);
        lock.unlock();
        open_ahead();
        if (slide != nullptr) return slide;
        continue;  // put off: the next one takes its place
      }
      if (!wait || ahead_.empty() || control_.stop_requested()) return nullptr;
      ahead_changed_.wait_for(lock, between_looks);
    }
  }

  /// Keeps as many slides opened, or being opened, as there are lanes to want one, and others in place of those that
  /// take long. Those whose storage failed have their turn again when their pause is over, and others go first.
  void open_ahead() {
    while (!control_.stop_requested() && wants_opening()) {
      SlideAttempt slide;
      if (!take_put_off(slide, next_slide_ == slides_.size())) {
        if (next_slide_ == slides_.size()) return;
        slide.index = next_slide_++;
      }
      std::list<Opening>::iterator opening;
      {
        const std::lock_guard lock(ahead_mutex_);
        opening = ahead_.emplace(ahead_.end());
      }
      io_.submit([this, opening, slide]() mutable {
        while (runtime::Clock::now() < slide.due && !control_.stop_requested()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        std::shared_ptr<SlideRun> run = open(slide);
        const std::lock_guard lock(ahead_mutex_);
        opening->slide = std::move(run);
        opening->is_over = true;
        // Under the lock: whoever waits may destroy this object as soon as it has it.
        ahead_changed_.notify_all();
      });
    }
  }

  bool wants_opening() {
    const std::lock_guard lock(ahead_mutex_);
    const auto slow = static_cast<std::size_t>(std::ranges::count_if(ahead_, &Opening::is_slow));
    return ahead_.size() < context_.lanes + std::min(slow, most_slow);
  }

  /// The slide that has waited longest for its turn again, and whose pause is over unless it may be `early`.
  bool take_put_off(SlideAttempt& slide, bool early) {
    const std::lock_guard lock(put_off_mutex_);
    const auto next = std::ranges::min_element(put_off_, {}, &SlideAttempt::due);
    if (next == put_off_.end() || (!early && next->due > runtime::Clock::now())) return false;
    slide = *next;
    put_off_.erase(next);
    return true;
  }

  /// Null: the slide was put off.
  std::shared_ptr<SlideRun> open(SlideAttempt& slide) {
    std::shared_ptr<SlideRun> run = opener_.open(slide);
    if (run == nullptr) {
      const std::lock_guard lock(put_off_mutex_);
      put_off_.push_back(slide);
    }
    return run;
  }

  RunContext& context_;
  const std::vector<std::string>& slides_;
  const RunControl& control_;
  SlideOpener opener_;
  runtime::IoThreads& io_;
  std::vector<LaneSending> lanes_;  ///< each used by its lane alone

  std::mutex put_off_mutex_;
  std::vector<SlideAttempt> put_off_;  ///< guarded by put_off_mutex_

  std::mutex ahead_mutex_;  ///< taken after `mutex_`
  std::condition_variable ahead_changed_;
  std::list<Opening> ahead_;  ///< in order; guarded by ahead_mutex_

  std::mutex mutex_;  ///< of what follows
  std::size_t next_slide_ = 0;
  std::deque<Opened> opened_;
};

}  // namespace

std::int64_t fragments_of_slide(SplitSlides split, std::size_t slides_left, std::size_t lanes) noexcept {
  const auto fragments = static_cast<std::int64_t>(lanes);
  switch (split) {
    case SplitSlides::never:
      return 1;
    case SplitSlides::always:
      return std::max<std::int64_t>(2, fragments);
    case SplitSlides::automatic:
      return slides_left > lanes ? 1 : fragments;
  }
  return fragments;
}

bool is_left_to_others(const std::vector<const Chain*>& taken, std::size_t lane) noexcept {
  const Chain* const own = taken[lane];
  return own != nullptr && own->strips_sent > own->strips_reduced.load() + 1 && std::ranges::count(taken, nullptr) > 0;
}

std::unique_ptr<SourceStage> make_source_stage(RunContext& context, const std::vector<std::string>& slides,
                                               const RunControl& control, runtime::IoThreads& io) {
  return std::make_unique<Source>(context, slides, control, io);
}

}  // namespace slidestream
