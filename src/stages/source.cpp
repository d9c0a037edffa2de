#include "stages/source.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <iomanip>
#include <list>
#include <mutex>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>

#include "operators/tissue/preparation.hpp"
#include "planning/network_plan.hpp"
#include "planning/tile_ranges.hpp"
#include "slide/file.hpp"
#include "slide/open_options.hpp"
#include "stages/emit.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/images/slide_images.hpp"
#include "stages/range_payload.hpp"
#include "stages/run/small_levels.hpp"

namespace slidestream {
namespace {

/// Besides those of a failing storage: pauses of 30 s at most, some four minutes.
constexpr int retries_of_shortage = 8;
/// Where memory lacks: pauses of 3 s together.
constexpr int retries_of_memory = 5;

class Source final : public SourceStage {
 public:
  Source(RunContext& context, const std::vector<std::string>& slides, const RunControl& control, runtime::IoThreads& io)
      : context_(context), slides_(slides), control_(control), io_(io), lanes_(context.lanes) {
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

  /// A slide that is being opened. Guarded by `ahead_mutex_`.
  struct Opening {
    std::shared_ptr<SlideRun> slide;  ///< null: not yet, or it was put off
    bool is_over = false;
    runtime::Clock::time_point begin = runtime::Clock::now();

    /// Others needn't wait for it any longer.
    bool is_slow() const { return !is_over && runtime::Clock::now() - begin > std::chrono::milliseconds(200); }
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
        if (opened_.size() == most_opened) return false;
        const std::shared_ptr<SlideRun> opened = next_opened(may_wait && opened_.empty());
        if (opened == nullptr) return false;
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
      PutOff slide;
      if (!take_put_off(slide, next_slide_ == slides_.size())) {
        if (next_slide_ == slides_.size()) return;
        slide.index = next_slide_++;
      }
      std::list<Opening>::iterator opening;
      {
        const std::lock_guard lock(ahead_mutex_);
        opening = ahead_.emplace(ahead_.end());
      }
      io_.submit([this, opening, slide] {
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

  /// It has its turn again after a pause.
  void put_off(PutOff& slide) {
    slide.due = runtime::Clock::now() + pause_before_retry(slide.attempt++);
    const std::lock_guard lock(put_off_mutex_);
    put_off_.push_back(slide);
  }

  /// Null: its storage failed in a way that may pass, or memory lacked, and it was put off.
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
      const auto give_up = [this, reading = run.get(), begin = slide.begin] {
        return control_.stop_requested() || context_.is_late(*reading->work) ||
               (reading->is_opening.load() && is_late(begin + std::chrono::nanoseconds(reading->waited)));
      };
      OpenOptions options = open_options(context_.config, run->path);
      options.retry_opening = false;
      options.give_up = give_up;
      options.decode_memory = context_.decode_memory;
      run->slide = Slide::open(run->path, options);
      tell_of_opening(*run);
      describe(*run);
      prepare_operators(*run, give_up);
      run->decode_on_device = context_.gpus != nullptr && context_.gpus->decodes(*run->slide, run->level);
      if (!run->decode_on_device && !context_.operators.empty()) {
        check_decode_memory(context_.config, *run->slide, run->level);
      }
      const TileRanges ranges{*run->slide, run->level};
      const Level& level = run->slide->info().levels[run->level];
      const bool any_fits = std::ranges::any_of(
          context_.needs, [&level](const OperatorNeeds& needs) { return has_window(level, needs.footprint); });
      // Where none does, others have found what they want in the small level.
      if (any_fits) {
        // A device makes the levels of all images or of none.
        run->levels_on_device = !run->lacks_any() && levels_on_device(level, context_.needs, context_.limits);
        run->plan = plan_level(
            level, fitting_needs(level, context_.needs), context_.config.pipeline, context_.limits,
            &TileRanges::compressed_bytes, &ranges,
            {fragments(index), run->decode_on_device,
             batch_pixels_of(index, slides_.size(), context_.lanes, run->levels_on_device), run->levels_on_device});
        context_.pixels_started += static_cast<std::uint64_t>(level.width * level.height);
      }
      run->chains = std::vector<Chain>(run->plan.chains.size());
      result.sums.histogram.assign(static_cast<std::size_t>(context_.config.analysis.bins), 0);
      if (context_.spectrum && context_.config.output.maps != MapFormat::none &&
          !run->lacks(context_.ranks[*context_.spectrum])) {
        const Size& windows = run->plan.outputs[*context_.spectrum];
        result.map.columns = windows.width;
        result.map.rows = windows.height;
        result.map.values.assign(static_cast<std::size_t>(windows.width * windows.height) * 2, 0.0F);
      }
      begin_files(*run);
    } catch (const StoppedError&) {
      if (control_.stop_requested()) {
        run->abandoned.store(true);
      } else {
        run->fail("source", context_.text_of_limit(), {});
      }
    } catch (const StorageError& error) {
      const bool no_descriptor = dynamic_cast<const DescriptorError*>(&error) != nullptr;
      const int retries = context_.config.input.retries;
      if (control_.stop_requested()) {
        run->abandoned.store(true);
      } else if (is_late(slide.begin)) {
        run->fail("source", context_.text_of_limit(), {});
      } else if (slide.attempt < retries + (no_descriptor && retries > 0 ? retries_of_shortage : 0)) {
        put_off(slide);
        return nullptr;
      } else if (no_descriptor) {
        // All slides that are left would fail: the next run does them.
        run->abandoned.store(true);
        context_.on_fatal(std::current_exception());
      } else {
        run->fail("source", current_cause(run->path), {});
      }
    } catch (const std::bad_alloc&) {
      // Others that end may give back what it needs.
      if (!control_.stop_requested() && slide.attempt < retries_of_memory && !is_late(slide.begin)) {
        put_off(slide);
        return nullptr;
      }
      run->fail("source", current_cause(run->path), {});
    } catch (...) {
      run->fail("source", current_cause(run->path), {});
    }
    run->is_opening.store(false);
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

  /// What operators want to know before the slide's pixels pass by. One that fails makes nothing of the slide; the
  /// slide fails only if all do.
  void prepare_operators(SlideRun& run, const std::function<bool()>& given_up) const {
    const SlideContext about = {*run.slide, run.level, run.path, run.slide->info().mean_mpp()};
    operators::Admission admission = admission_of(
        context_.small_levels, run.path, [this] { return control_.stop_requested(); }, run.waited);
    admission.given_up = given_up;
    admission.beside = stains_bytes(context_.config, run.slide->info());
    about.common =
        std::make_shared<operators::Preparation>(about, context_.config, std::move(admission), context_.tissue_network);
    std::exception_ptr first;
    for (std::size_t rank = 0; rank < context_.all_operators.size(); ++rank) {
      const auto& op = context_.all_operators[rank];
      std::shared_ptr<const SlideParameters> parameters;
      bool lacks = false;
      try {
        const auto of_pixels = std::ranges::find(context_.ranks, rank);
        if (of_pixels != context_.ranks.end()) {
          const auto& needs = context_.needs[static_cast<std::size_t>(of_pixels - context_.ranks.begin())];
          require_window(run.slide->info().levels[run.level], needs.footprint);
        }
        parameters = op->prepare(about);
        if (op->network() != nullptr) prepare_network(run, *op, about);
      } catch (const StorageError&) {
        throw;
      } catch (const StoppedError&) {
        throw;
      } catch (const Error&) {
        lacks = true;
        run.result.lack({op->name(), {}, current_cause(run.path)});
        if (first == nullptr) first = std::current_exception();
      }
      run.lacking.push_back(lacks);
      if (parameters != nullptr && !lacks) {
        for (NamedValue& value : parameters->values()) run.result.values.push_back(std::move(value));
      }
      run.parameters.push_back(lacks ? nullptr : std::move(parameters));
    }
    if (first != nullptr && std::ranges::find(run.lacking, false) == run.lacking.end()) std::rethrow_exception(first);
    tell_of_tissue(run, about);
  }

  /// Whether its tiles can be cut, and which of them are tissue.
  void prepare_network(SlideRun& run, const Operator& op, const SlideContext& about) const {
    network_plan_of(context_, run, op);
    if (!op.network()->tiles().tissue_only || run.tissue != nullptr) return;
    const SlideInfo& info = run.slide->info();
    const GridScale scale = {info.downsample_x(run.level), info.downsample_y(run.level)};
    run.tissue = std::make_shared<const TissueTiles>(
        TissueTiles{MaskTable(*operators::prepare_mask(about, context_.config)), scale});
  }

  void tell_of_share(const SlideRun& run, const std::optional<double>& share) const {
    constexpr double suspicious = 0.95;
    if (!share || !context_.on_message || (*share > 0.0 && *share <= suspicious)) return;
    if (*share == 0.0) return context_.on_message(run.path + ": no tissue was found");
    std::ostringstream text;
    text << run.path << ": " << std::fixed << std::setprecision(1) << 100.0 * *share
         << " % of the slide are tissue; look at its mask, and set "
         << (context_.tissue_network ? "tissue.probability or tissue.class" : "tissue.method or tissue.threshold")
         << " if it is wrong";
    context_.on_message(text.str());
  }

  void tell_of_tissue(const SlideRun& run, const SlideContext& about) const {
    // A network that wants to know the pixel size has said so.
    if (about.common->is_asked() && !about.mpp && context_.on_message && context_.tissue_network == nullptr) {
      const bool fits = context_.config.operators.runs("stain");
      context_.on_message(run.path +
                          ": the slide doesn't say its pixel size: tissue is found at 1/32 of its sides, without "
                          "tissue.min_um2 and tissue.fill_um2" +
                          (fits ? ", and stains are fitted as if 4 pixels were 1 um" : "") + "; set input.mpp");
    }
    tell_of_share(run, about.common->share());
    const std::size_t ignored = about.common->ignored();
    if (ignored > 0 && context_.on_message) {
      context_.on_message(run.path + ": points and lines of its outlines are ignored, as they have no area: " +
                          std::to_string(ignored));
    }
  }

  /// The files that operators make.
  void begin_files(SlideRun& run) const {
    if (context_.emit == nullptr) return;
    ImageNames names;
    names.name = control_.image_name ? control_.image_name(run.path) : std::filesystem::path(run.path).stem().string();
    names.check = control_.check_file;
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

  void tell_of_opening(const SlideRun& run) {
    const SlideInfo& info = run.slide->info();
    if (context_.on_warning) {
      for (const std::string& warning : info.warnings) context_.on_warning(run.path + ": " + warning);
    }
    if (!context_.on_message) return;
    for (const std::string& note : info.notes) context_.on_message(run.path + ": " + note);
    say_library(run);
  }

  /// Who reads slides that have no reader here is said once.
  void say_library(const SlideRun& run) {
    const SlideInfo& info = run.slide->info();
    if (info.library.empty()) return;
    std::call_once(library_said_, [&] {
      context_.on_message(run.path + ": is read by " + info.library + "; so are others that have no reader here");
    });
  }

  void describe(SlideRun& run) const {
    const SlideInfo& info = run.slide->info();
    SlideResult& result = run.result;
    result.file_bytes = info.file_size;
    run.level = level_of(context_.config, context_.operators, info);
    result.level = static_cast<int>(run.level);
    const Level& level = info.levels[run.level];
    // Tiles may be decoded at half size; the results give the slide's own size.
    const Level& coded = run.slide->coded_level(run.level);
    result.width = coded.width;
    result.height = coded.height;
    result.codec = name(level.codec);
    result.colour = name(level.colour);
    result.mpp = mpp_of(info, run.level);
    if (context_.config.converts_colours()) {
      result.values.push_back({"srgb", info.is_srgb ? 1.0 : 0.0});
    }
    if (info.mpp_y) result.values.push_back({"mpp_y", *info.mpp_y * info.downsample_y(run.level)});
  }

  std::once_flag library_said_;
  RunContext& context_;
  const std::vector<std::string>& slides_;
  const RunControl& control_;
  runtime::IoThreads& io_;
  std::vector<LaneSending> lanes_;  ///< each used by its lane alone

  std::mutex put_off_mutex_;
  std::vector<PutOff> put_off_;  ///< guarded by put_off_mutex_

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

std::unique_ptr<SourceStage> make_source_stage(RunContext& context, const std::vector<std::string>& slides,
                                               const RunControl& control, runtime::IoThreads& io) {
  return std::make_unique<Source>(context, slides, control, io);
}

}  // namespace slidestream
