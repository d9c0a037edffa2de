#include "stages/reduce.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "runtime/handoff.hpp"
#include "stages/emit.hpp"
#include "stages/range_payload.hpp"

namespace slidestream {
namespace {

class Reduce final : public ReduceStage {
 public:
  Reduce(RunContext& context, Delivery& delivery) : context_(context), delivery_(delivery) {
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
    runtime::Slot slot = std::move(batch.slot);
    if (++chain.strips_reduced == chain.strips_expected && ++slide->chains_reduced == slide->chains.size()) {
      complete(*slide, std::move(slot));
    }
  }

  void finish(RunResult& result) override {
    const runtime::Turn turn(turn_);
    const std::lock_guard lock(corpus_mutex_);
    result.corpus = std::move(corpus_);
  }

 private:
  void add(Batch& batch) {
    SlideRun& slide = *batch.slide;
    if (context_.spectrum) slide.result.sums += batch.sums;
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

  void complete(SlideRun& slide, runtime::Slot slot) {
    if (slide.abandoned.load() && !slide.failed()) {
      slide.images.reset();
      return;
    }
    SlideResult& result = slide.result;
    result.done = !slide.failed();
    result.backend = context_.backend;
    if (slide.images != nullptr && !slide.images->networks.empty()) {
      // Whether it is done its networks know later.
      context_.emit->hand_over(std::move(slide.images), std::move(result), slide.index,
                               [this, start = slide.start](SlideResult& late) { conclude(late, start); });
      return;
    }
    conclude(result, slide.start);
    if (slide.images != nullptr) {
      context_.emit->hand_over(std::move(slide.images), std::move(result), slide.index, {});
    } else {
      delivery_.put(std::move(result), slide.index, std::move(slot));
    }
  }

  /// Thread-safe.
  void conclude(SlideResult& result, runtime::Clock::time_point start) {
    result.seconds = std::chrono::duration<double>(runtime::Clock::now() - start).count();
    const std::lock_guard lock(corpus_mutex_);
    if (result.done) {
      corpus_ += result.sums;
    } else {
      // Nothing half-done is kept: how far other strips came is chance.
      const std::size_t bins = corpus_.histogram.size();
      result.sums = {};
      result.sums.histogram.assign(bins, 0);
      result.map = {};
      result.missing_tiles = result.bad_tiles = result.gpu_fallback_tiles = 0;
    }
  }

  RunContext& context_;
  Delivery& delivery_;
  std::mutex corpus_mutex_;
  SpectrumSums corpus_;  ///< guarded by corpus_mutex_
  runtime::Handoff turn_;
};

}  // namespace

std::unique_ptr<ReduceStage> make_reduce_stage(RunContext& context, Delivery& delivery) {
  return std::make_unique<Reduce>(context, delivery);
}

}  // namespace slidestream
