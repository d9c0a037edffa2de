#include "stages/compute.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <utility>

#include "stages/range_payload.hpp"

namespace slidestream {
namespace {

/// One thread's buffers.
struct Local {
  std::unique_ptr<SpectrumEngine::Workspace> workspace;
  SpectrumSums sums;
};

void clear(SpectrumSums& sums) {
  std::fill(sums.histogram.begin(), sums.histogram.end(), 0);
  sums.windows = sums.values = sums.clipped = 0;
  sums.sum = sums.sum_of_squares = 0;
}

class Compute final : public ComputeStage {
 public:
  explicit Compute(RunContext& context)
      : context_(context), engine_(make_spectrum_engine(context.config.analysis)), locals_([this] {
          Local local;
          local.workspace = engine_->make_workspace();
          local.sums.histogram.assign(static_cast<std::size_t>(context_.config.analysis.bins), 0);
          return local;
        }) {}

  std::size_t tasks(const Batch& batch) const override {
    if (batch.skip() || batch.rows(spectrum_operator).count == 0) return 0;
    const std::int64_t step = engine_->columns_per_task();
    return static_cast<std::size_t>((batch.columns(spectrum_operator).count + step - 1) / step);
  }

  ComputeTask task(Batch& batch, std::size_t i) const override {
    const OutputRange& columns = batch.columns(spectrum_operator);
    const OutputRange& rows = batch.rows(spectrum_operator);
    const std::int64_t step = engine_->columns_per_task();
    const std::int64_t first = static_cast<std::int64_t>(i) * step;
    return {&batch, {columns.first + first, std::min(step, columns.count - first), rows.first, rows.count}};
  }

  void run(const ComputeTask& task) override {
    Batch& batch = *task.batch;
    runtime::StageMeter::Busy busy(context_.compute, payload_of(batch));
    guarded(context_, "compute", batch, [&] {
      Local& local = locals_.local();
      clear(local.sums);
      SlideRun& slide = *batch.slide;
      const Level& level = slide.slide->info().levels[slide.level];
      const PanelPlan& panel = batch.panel();
      const StripPlan& strip = batch.strip;
      const LuminancePlane plane = {batch.own_rows - (strip.y0 - strip.carry_in_y0) * panel.pitch,
                                    panel.pitch,
                                    panel.x0,
                                    strip.carry_in_y0,
                                    panel.x1 - panel.x0,
                                    strip.y1 - strip.carry_in_y0,
                                    level.width,
                                    level.height};
      WindowMap& map = slide.result.map;
      engine_->run(local.sums, {map.values.empty() ? nullptr : map.values.data(), map.columns}, plane, task.block,
                   *local.workspace);
      busy.add(local.sums.windows, local.sums.values);
      const std::lock_guard lock(batch.sums_mutex);
      batch.sums += local.sums;
    });
  }

  const char* engine() const noexcept override { return engine_->name(); }

 private:
  RunContext& context_;
  std::unique_ptr<SpectrumEngine> engine_;
  tbb::enumerable_thread_specific<Local> locals_;
};

}  // namespace

const runtime::StageContract compute_contract = {
    "compute",
    runtime::Payload::luminance_rows,
    runtime::MemorySpace::host,
    runtime::Payload::partial_sums,
    runtime::MemorySpace::host,
    runtime::Concurrency::parallel,
};

std::unique_ptr<ComputeStage> make_compute_stage(RunContext& context) { return std::make_unique<Compute>(context); }

}  // namespace slidestream
