#include "stages/source.hpp"

#include <future>
#include <utility>

#include <slidestream/error.hpp>

#include "stages/tile_ranges.hpp"

namespace slidestream {
namespace {

class Source final : public SourceStage {
 public:
  Source(RunContext& context, const std::vector<std::string>& slides, const RunControl& control, runtime::IoThreads& io)
      : context_(context), slides_(slides), control_(control), io_(io) {
    open_ahead();
  }

  ~Source() override {
    // The opener refers to this object.
    if (ahead_.valid()) ahead_.wait();
  }

  bool next(StripMessage& message) override {
    if (current_ == nullptr) {
      if (!ahead_.valid() || control_.stop_requested()) return false;
      current_ = ahead_.get();
      next_strip_ = 0;
      open_ahead();
    }
    const runtime::StageMeter::Busy busy(context_.source);
    if (next_strip_ > 0) {
      if (control_.stop_requested()) current_->abandoned.store(true);
      try {
        context_.check_fault("source", *current_, next_strip_);
      } catch (...) {
        current_->fail("source", current_cause(current_->path));
      }
    }
    message.slide = current_;
    message.strip_index = next_strip_++;
    message.empty = current_->failed() || current_->abandoned.load();
    message.last = message.empty || next_strip_ == current_->plan.strips.size();
    if (message.last) current_ = nullptr;
    context_.source.add(1, 0);
    return true;
  }

 private:
  void open_ahead() {
    ahead_ = {};
    if (next_slide_ == slides_.size() || control_.stop_requested()) return;
    auto promise = std::make_shared<std::promise<std::shared_ptr<SlideRun>>>();
    ahead_ = promise->get_future();
    io_.submit([this, promise, index = next_slide_++] { promise->set_value(open(index)); });
  }

  std::shared_ptr<SlideRun> open(std::size_t index) const {
    auto run = std::make_shared<SlideRun>();
    run->index = index;
    run->path = slides_[index];
    run->start = runtime::Clock::now();
    SlideResult& result = run->result;
    result.path = run->path;
    result.level = context_.config.input.level;
    try {
      const runtime::StageMeter::Busy busy(context_.source);
      context_.check_fault("source", *run, 0);
      run->slide = Slide::open(run->path, {.max_pixels = context_.config.input.max_pixels});
      describe(*run);
      const TileRanges ranges{*run->slide, run->level};
      run->plan = plan_level(run->slide->info().levels[run->level], context_.config.analysis, context_.config.pipeline,
                             context_.limits, &TileRanges::compressed_bytes, &ranges);
      result.sums.histogram.assign(static_cast<std::size_t>(context_.config.analysis.bins), 0);
      if (context_.config.output.maps != MapFormat::none) {
        result.map.columns = run->plan.windows_x;
        result.map.rows = run->plan.windows_y;
        result.map.values.assign(static_cast<std::size_t>(run->plan.windows_x * run->plan.windows_y) * 2, 0.0F);
      }
      context_.pixels_started += static_cast<std::uint64_t>(result.width * result.height);
    } catch (...) {
      run->fail("source", current_cause(run->path));
    }
    return run;
  }

  void describe(SlideRun& run) const {
    const SlideInfo& info = run.slide->info();
    SlideResult& result = run.result;
    result.file_bytes = info.file_size;
    if (static_cast<std::size_t>(result.level) >= info.levels.size()) {
      throw Error("level " + std::to_string(result.level) + " was asked for, but the slide has " +
                  std::to_string(info.levels.size()) + (info.levels.size() == 1 ? " level" : " levels"));
    }
    run.level = static_cast<std::size_t>(result.level);
    const Level& level = info.levels[run.level];
    result.width = level.width;
    result.height = level.height;
    result.codec = name(level.codec);
    result.colour = name(level.colour);
    if (info.mpp) result.mpp = *info.mpp * level.downsample;
  }

  RunContext& context_;
  const std::vector<std::string>& slides_;
  const RunControl& control_;
  runtime::IoThreads& io_;
  std::size_t next_slide_ = 0;
  std::future<std::shared_ptr<SlideRun>> ahead_;
  std::shared_ptr<SlideRun> current_;
  std::size_t next_strip_ = 0;
};

}  // namespace

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
