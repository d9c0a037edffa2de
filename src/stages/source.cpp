#include "stages/source.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>

#include "operators/tissue/preparation.hpp"
#include "slide/file.hpp"
#include "stages/emit.hpp"
#include "stages/gpu.hpp"
#include "stages/network_plan.hpp"
#include "stages/range_payload.hpp"
#include "stages/tile_ranges.hpp"

namespace slidestream {
namespace {

class Source final : public SourceStage {
 public:
  Source(RunContext& context, const std::vector<std::string>& slides, const RunControl& control, runtime::IoThreads& io)
      : context_(context), slides_(slides), control_(control), io_(io), lanes_(context.lanes) {
    open_ahead();
  }

  ~Source() override {
    // The openers refer to this object.
    for (const auto& opening : ahead_) opening.wait();
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
  };

  /// A slide to be opened, or to be opened again after a pause.
  struct PutOff {
    std::size_t index = 0;
    int attempt = 0;
    runtime::Clock::time_point begin;  ///< of the first attempt
    runtime::Clock::time_point due;
  };

  /// What the lane sends next; null when there is nothing. Batches that the CPU decodes get half of the slots, and the
  /// others as well when the GPU has nothing to decode.
  Sending* choose(std::size_t lane) {
    LaneSending& sending = lanes_[lane];
    const std::size_t half = (static_cast<std::size_t>(context_.config.pipeline.queue_depth) + 1) / 2;
    const bool cpu_first = context_.gpus == nullptr || context_.lane_loads[lane].decoded_on_cpu.load() < half;
    Sending& preferred = cpu_first ? sending.on_cpu : sending.on_device;
    if (preferred.slide != nullptr) return &preferred;
    Sending& other = cpu_first ? sending.on_device : sending.on_cpu;
    // One lock for both: chains that other lanes take in between could make a lane believe that nothing is left. Who
    // has something to send doesn't wait for it: whoever holds it may be waiting for a slide to be opened.
    std::unique_lock lock(mutex_, std::defer_lock);
    if (other.slide == nullptr) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return &other;
    }
    if (take_chain(preferred, !cpu_first, other.slide == nullptr)) return &preferred;
    if (other.slide != nullptr || take_chain(other, cpu_first, true)) return &other;
    return nullptr;
  }

  /// The next chain that no lane has taken, of slides that are decoded as asked for. Under the lock. It waits for a
  /// slide that is being opened when it may, and when there is no other.
  bool take_chain(Sending& sending, bool on_device, bool may_wait) {
    if (control_.stop_requested()) return false;
    for (std::size_t i = 0;; ++i) {
      if (i == opened_.size()) {
        if (ahead_.empty() || opened_.size() == most_opened) return false;
        const bool ready = ahead_.front().wait_for(std::chrono::seconds(0)) == std::future_status::ready;
        if (!ready && !(may_wait && opened_.empty())) return false;
        const std::shared_ptr<SlideRun> opened = ahead_.front().get();
        ahead_.pop_front();
        open_ahead();
        if (opened == nullptr) {
          --i;  // put off: the next one takes its place
          continue;
        }
        opened_.push_back({opened});
      }
      Opened& opened = opened_[i];
      if (opened.slide->decode_on_device != on_device) continue;
      sending = {opened.slide, &opened.slide->chains[opened.next_chain], 0};
      if (++opened.next_chain == opened.slide->chains.size()) {
        opened_.erase(opened_.begin() + static_cast<std::ptrdiff_t>(i));
      }
      return true;
    }
  }

  /// Keeps as many slides opened, or being opened, as there are lanes to want one. Those whose storage failed have
  /// their turn again when their pause is over, and others go first.
  void open_ahead() {
    while (ahead_.size() < context_.lanes && !control_.stop_requested()) {
      PutOff slide;
      if (!take_put_off(slide, next_slide_ == slides_.size())) {
        if (next_slide_ == slides_.size()) return;
        slide.index = next_slide_++;
      }
      auto promise = std::make_shared<std::promise<std::shared_ptr<SlideRun>>>();
      ahead_.push_back(promise->get_future());
      io_.submit([this, promise, slide] {
        while (runtime::Clock::now() < slide.due && !control_.stop_requested()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        promise->set_value(open(slide));
      });
    }
  }

  /// The slide that has waited longest for its turn again, and whose pause is over unless it may be `early`.
  bool take_put_off(PutOff& slide, bool early) {
    const std::lock_guard lock(put_off_mutex_);
    const auto next = std::ranges::min_element(put_off_, {}, &PutOff::due);
    if (next == put_off_.end() || (!early && next->due > runtime::Clock::now())) return false;
    slide = *next;
    put_off_.erase(next);
    return true;
  }

  std::int64_t fragments(std::size_t index) const {
    return fragments_of_slide(context_.config.gpu.split_slides, slides_.size() - index, context_.lanes);
  }

  /// Whether the slide has taken longer than one may, the time to open it counted.
  bool is_late(runtime::Clock::time_point begin) const {
    const int limit = context_.config.input.max_seconds;
    return limit > 0 && runtime::Clock::now() - begin > std::chrono::seconds(limit);
  }

  /// Null: its storage failed in a way that may pass, and it was put off.
  std::shared_ptr<SlideRun> open(PutOff slide) {
    const std::size_t index = slide.index;
    auto run = std::make_shared<SlideRun>();
    run->index = index;
    run->path = slides_[index];
    run->start = runtime::Clock::now();
    SlideResult& result = run->result;
    result.path = run->path;
    result.level = context_.config.input.level;
    try {
      if (slide.attempt == 0) {
        slide.begin = run->start;
        if (control_.on_start) control_.on_start(run->path);
      }
      const runtime::StageMeter::Busy busy(context_.source, {static_cast<std::int64_t>(index)});
      context_.check_fault("source", *run, 0);
      // The slide doesn't outlive its run.
      const auto give_up = [this, reading = run.get()] {
        return control_.stop_requested() || context_.is_late(*reading->work);
      };
      run->slide =
          Slide::open(run->path, {.max_pixels = context_.config.input.max_pixels,
                                  .retries = context_.config.input.retries,
                                  .retry_opening = false,
                                  .give_up = give_up,
                                  .mpp = context_.config.input.mpp,
                                  .shrink_on_load = context_.config.image.copy_levels == CopyLevels::shrink_on_load});
      describe(*run);
      run->decode_on_device = context_.gpus != nullptr && context_.gpus->decodes(*run->slide, run->level);
      const TileRanges ranges{*run->slide, run->level};
      if (!context_.operators.empty()) {
        const Level& level = run->slide->info().levels[run->level];
        run->levels_on_device = levels_on_device(level, context_.needs, context_.limits);
        run->plan = plan_level(
            level, context_.needs, context_.config.pipeline, context_.limits, &TileRanges::compressed_bytes, &ranges,
            {fragments(index), run->decode_on_device,
             batch_pixels_of(index, slides_.size(), context_.lanes, run->levels_on_device), run->levels_on_device});
        context_.pixels_started += static_cast<std::uint64_t>(result.width * result.height);
      }
      run->chains = std::vector<Chain>(run->plan.chains.size());
      result.sums.histogram.assign(static_cast<std::size_t>(context_.config.analysis.bins), 0);
      if (context_.spectrum && context_.config.output.maps != MapFormat::none) {
        const Size& windows = run->plan.outputs[*context_.spectrum];
        result.map.columns = windows.width;
        result.map.rows = windows.height;
        result.map.values.assign(static_cast<std::size_t>(windows.width * windows.height) * 2, 0.0F);
      }
      prepare(*run);
    } catch (const StorageError&) {
      if (control_.stop_requested()) {
        run->abandoned.store(true);
      } else if (is_late(slide.begin)) {
        run->fail("source", context_.text_of_limit(), {});
      } else if (slide.attempt < context_.config.input.retries) {
        slide.due = runtime::Clock::now() + pause_before_retry(slide.attempt++);
        const std::lock_guard lock(put_off_mutex_);
        put_off_.push_back(slide);
        return nullptr;
      } else {
        run->fail("source", current_cause(run->path), {});
      }
    } catch (...) {
      run->fail("source", current_cause(run->path), {});
    }
    if (context_.emit != nullptr && run->images == nullptr) context_.emit->nothing_of(*run);
    if (run->chains.empty()) {
      run->chains = std::vector<Chain>(1);
    } else {
      run->chains_to_send.store(run->chains.size());
      for (std::size_t i = 0; i < run->chains.size(); ++i) {
        run->chains[i].index = i;
        run->chains[i].plan = run->plan.chains[i];
      }
    }
    return run;
  }

  /// What operators want to know before the slide's pixels pass by, and the files that they make.
  void prepare(SlideRun& run) const {
    const SlideContext about = {*run.slide, run.level, run.path, run.slide->info().mpp};
    for (const auto& op : context_.all_operators) {
      const auto& parameters = run.parameters.emplace_back(op->prepare(about));
      if (parameters == nullptr) continue;
      for (NamedValue& value : parameters->values()) run.result.values.push_back(std::move(value));
    }
    if (std::ranges::any_of(context_.operators, [](const auto& op) {
          return op->network() != nullptr && op->network()->tiles().tissue_only;
        })) {
      const std::vector<Level>& levels = run.slide->info().levels;
      const Level& level = levels[run.level];
      const GridScale scale = {static_cast<double>(levels[0].width) / static_cast<double>(level.width),
                               static_cast<double>(levels[0].height) / static_cast<double>(level.height)};
      run.tissue = std::make_shared<const TissueTiles>(TissueTiles{
          MaskTable(*operators::prepare_mask(about, context_.config)), scale, context_.config.tissue.share});
    }
    if (context_.emit == nullptr) return;
    ImageNames names;
    names.name = control_.image_name ? control_.image_name(run.path) : std::filesystem::path(run.path).stem().string();
    if (control_.image_file) {
      names.place = [this, &run](const std::string& name) { return control_.image_file(run.path, name); };
    }
    try {
      run.images = context_.emit->open(run, names);
    } catch (const OutputError&) {
      // Where nothing can be written, no slide can be done: it waits for the next run.
      run.abandoned.store(true);
      context_.on_output_failure(std::current_exception());
    }
  }

  void describe(SlideRun& run) const {
    const SlideInfo& info = run.slide->info();
    SlideResult& result = run.result;
    result.file_bytes = info.file_size;
    run.level = level_of(context_.config, context_.operators, info);
    result.level = static_cast<int>(run.level);
    const Level& level = info.levels[run.level];
    result.width = level.width;
    result.height = level.height;
    result.codec = name(level.codec);
    result.colour = name(level.colour);
    result.mpp = mpp_of(info, run.level);
  }

  RunContext& context_;
  const std::vector<std::string>& slides_;
  const RunControl& control_;
  runtime::IoThreads& io_;
  std::vector<LaneSending> lanes_;  ///< each used by its lane alone

  std::mutex put_off_mutex_;
  std::vector<PutOff> put_off_;  ///< guarded by put_off_mutex_

  std::mutex mutex_;  ///< of what follows
  std::size_t next_slide_ = 0;
  std::deque<std::future<std::shared_ptr<SlideRun>>> ahead_;
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

const runtime::StageContract source_contract = {
    "source",
    runtime::Payload::nothing,
    runtime::MemorySpace::none,
    runtime::Payload::strips,
    runtime::MemorySpace::none,
    runtime::Concurrency::serial,
};

std::unique_ptr<SourceStage> make_source_stage(RunContext& context, const std::vector<std::string>& slides,
                                               const RunControl& control, runtime::IoThreads& io) {
  return std::make_unique<Source>(context, slides, control, io);
}

}  // namespace slidestream
