#include "stages/compute.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <utility>

#include "stages/images/slide_images.hpp"
#include "stages/range_payload.hpp"

namespace slidestream {
namespace {

/// One thread's kernels, and what it sums up.
struct Local {
  std::vector<std::unique_ptr<HostKernel>> kernels;  ///< by operator
  SpectrumSums sums;
};

class Compute final : public ComputeStage {
 public:
  explicit Compute(RunContext& context)
      : context_(context), locals_([this] {
          Local local;
          for (const auto& op : context_.operators) local.kernels.push_back(op->host_kernel());
          local.sums.histogram.assign(static_cast<std::size_t>(context_.config.analysis.bins), 0);
          return local;
        }) {
    // Fails here rather than with the first slide.
    for (const auto& kernel : locals_.local().kernels) columns_per_task_.push_back(kernel->columns_per_task());
  }

  std::size_t tasks(const Batch& batch) const override {
    if (batch.skip()) return 0;
    std::size_t tasks = 0;
    for (std::size_t op = 0; op < columns_per_task_.size(); ++op) tasks += tasks_of(batch, op);
    return tasks;
  }

  ComputeTask task(Batch& batch, std::size_t i) const override {
    std::size_t op = 0;
    for (std::size_t tasks = tasks_of(batch, op); i >= tasks; tasks = tasks_of(batch, op)) {
      i -= tasks;
      ++op;
    }
    const OutputRange& columns = batch.columns(op);
    const OutputRange& rows = batch.rows(op);
    const std::int64_t step = columns_per_task_[op];
    const std::int64_t first = static_cast<std::int64_t>(i) * step;
    return {&batch, op, {columns.first + first, std::min(step, columns.count - first), rows.first, rows.count}};
  }

  void run(const ComputeTask& task) override {
    Batch& batch = *task.batch;
    runtime::StageMeter::Busy busy(context_.compute, payload_of(batch));
    guarded(context_, "compute", batch, [&] {
      Local& local = locals_.local();
      local.sums.reset(static_cast<std::size_t>(context_.config.analysis.bins));
      SlideRun& slide = *batch.slide;
      const Level& level = slide.slide->info().levels[slide.level];
      const PanelPlan& panel = batch.panel();
      const StripPlan& strip = batch.strip;
      const Plane plane = context_.needs[task.op].plane;
      const std::int64_t first_row = strip.carry_in_y0[plane];
      const ConstPixelView<MemorySpace::host> pixels = {
          reinterpret_cast<const std::byte*>(batch.own_rows[plane] - (strip.y0 - first_row) * panel.pitch[plane]),
          panel.pitch[plane],
          {panel.x0, first_row, panel.x1 - panel.x0, strip.y1 - first_row},
          {level.width, level.height},
          plane_formats[plane]};
      OutputViews to;
      const bool is_spectrum = task.op == context_.spectrum;
      if (is_spectrum) {
        WindowMap& map = slide.result.map;
        to.sums = &local.sums;
        to.field = {map.values.empty() ? nullptr : map.values.data(), map.columns};
      }
      if (batch.band != nullptr) to.image = batch.band->images[task.op];
      local.kernels[task.op]->run(pixels, task.block, to, slide.parameters[context_.ranks[task.op]].get());
      if (!is_spectrum) {
        busy.add(1, static_cast<std::uint64_t>(task.block.columns * task.block.rows));
        return;
      }
      busy.add(local.sums.windows, local.sums.values);
      const std::lock_guard lock(batch.sums_mutex);
      batch.sums += local.sums;
    });
  }

  std::string description() const override {
    std::string text;
    for (const auto& op : context_.operators) text += (text.empty() ? "" : ", ") + op->host_description();
    return text;
  }

 private:
  std::size_t tasks_of(const Batch& batch, std::size_t op) const {
    if (batch.rows(op).count == 0 || batch.slide->lacks(context_.ranks[op])) return 0;
    const std::int64_t step = columns_per_task_[op];
    return static_cast<std::size_t>((batch.columns(op).count + step - 1) / step);
  }

  RunContext& context_;
  tbb::enumerable_thread_specific<Local> locals_;
  std::vector<std::int64_t> columns_per_task_;  ///< by operator
};

}  // namespace

std::unique_ptr<ComputeStage> make_compute_stage(RunContext& context) { return std::make_unique<Compute>(context); }

}  // namespace slidestream
