#include "stages/reduce.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "runtime/handoff.hpp"
#include "stages/range_payload.hpp"

namespace slidestream {
namespace {

class Reduce final : public ReduceStage {
 public:
  Reduce(RunContext& context, std::size_t slides, std::function<void(SlideResult&)> on_slide,
         std::function<void(std::exception_ptr)> on_error)
      : context_(context), on_slide_(std::move(on_slide)), on_error_(std::move(on_error)), finished_(slides) {
    corpus_.histogram.assign(static_cast<std::size_t>(context.config.analysis.bins), 0);
  }

  void run(Batch& batch) override {
    const runtime::Turn turn(turn_);
    const runtime::StageMeter::Busy busy(context_.reduce, payload_of(batch));
    guarded(context_, "reduce", batch, [&] { add(batch); });
    const std::shared_ptr<SlideRun> slide = std::move(batch.slide);
    Chain& chain = *batch.chain;
    if (batch.last) chain.strips_expected = batch.strip_of_chain() + 1;
    if (!batch.decode_on_device) --context_.lane_loads[batch.lane].decoded_on_cpu;
    batch.slot.reset();
    if (++chain.strips_reduced == chain.strips_expected && ++slide->chains_reduced == slide->chains.size()) {
      complete(*slide);
    }
  }

  std::uint64_t slides_done() const noexcept override { return done_.load(std::memory_order_relaxed); }
  std::uint64_t slides_failed() const noexcept override { return failed_.load(std::memory_order_relaxed); }

  void finish(RunResult& result) override {
    const runtime::Turn turn(turn_);
    result.corpus = std::move(corpus_);
    for (std::optional<SlideResult>& slide : finished_) {
      if (slide) result.slides.push_back(std::move(*slide));
    }
  }

 private:
  void add(Batch& batch) {
    SlideRun& slide = *batch.slide;
    slide.result.sums += batch.sums;
    slide.result.missing_tiles += batch.missing_tiles.load();
    slide.result.bad_tiles += batch.bad_tiles.load();
    slide.result.gpu_fallback_tiles += batch.fallback_tiles.load();
    const std::size_t panel = batch.strip.panel;
    const std::int64_t before = panel == 0 ? 0 : slide.plan.panels[panel - 1].x1;
    const Level& level = slide.slide->info().levels[slide.level];
    const std::int64_t first_row = std::max(batch.strip.y0, batch.strip.first_owned_tile_row * level.tile_height);
    const std::int64_t rows = std::max<std::int64_t>(0, batch.strip.y1 - first_row);
    context_.pixels_done += static_cast<std::uint64_t>(rows * (batch.panel().x1 - before));
    context_.reduce.add(1, batch.sums.histogram.size() * sizeof(std::uint64_t));
  }

  void complete(SlideRun& slide) {
    if (slide.abandoned.load() && !slide.failed()) return;
    SlideResult& result = slide.result;
    result.done = !slide.failed();
    result.seconds = std::chrono::duration<double>(runtime::Clock::now() - slide.start).count();
    result.backend = context_.backend;
    if (result.done) {
      corpus_ += result.sums;
      done_.fetch_add(1, std::memory_order_relaxed);
    } else {
      // Nothing half-done is kept.
      const std::size_t bins = corpus_.histogram.size();
      result.sums = {};
      result.sums.histogram.assign(bins, 0);
      result.map = {};
      failed_.fetch_add(1, std::memory_order_relaxed);
    }
    try {
      if (on_slide_) on_slide_(result);
    } catch (...) {
      on_error_(std::current_exception());
    }
    finished_[slide.index] = std::move(result);
  }

  RunContext& context_;
  std::function<void(SlideResult&)> on_slide_;
  std::function<void(std::exception_ptr)> on_error_;
  SpectrumSums corpus_;
  std::vector<std::optional<SlideResult>> finished_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> failed_{0};
  runtime::Handoff turn_;
};

}  // namespace

const runtime::StageContract reduce_contract = {
    "reduce",
    runtime::Payload::partial_sums,
    runtime::MemorySpace::host,
    runtime::Payload::results,
    runtime::MemorySpace::host,
    runtime::Concurrency::serial,
};

std::unique_ptr<ReduceStage> make_reduce_stage(RunContext& context, std::size_t slides,
                                               std::function<void(SlideResult&)> on_slide,
                                               std::function<void(std::exception_ptr)> on_error) {
  return std::make_unique<Reduce>(context, slides, std::move(on_slide), std::move(on_error));
}

}  // namespace slidestream
