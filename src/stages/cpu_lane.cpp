#include <utility>

#include "stages/carry.hpp"
#include "stages/compute.hpp"
#include "stages/emit.hpp"
#include "stages/lane.hpp"

namespace slidestream {
namespace {

namespace flow = tbb::flow;

class CpuLane final : public Lane {
 public:
  CpuLane(const Shared& shared, CarryStage& carry_stage, ComputeStage& compute_stage, EmitStage* emit)
      : Lane(shared, 0),
        carry_stage_(carry_stage),
        compute_stage_(compute_stage),
        emit_(emit),
        carry_(
            shared.graph, flow::serial, [this](Batch* batch, auto& ports) { carry(*batch, ports); },
            flow::node_priority_t{3}),
        begin_(
            shared.graph, flow::unlimited, [this](Batch* batch, auto& ports) { begin(*batch, ports); },
            flow::node_priority_t{3}),
        compute_(
            shared.graph, flow::unlimited, [this](const ComputeTask& task, auto& ports) { compute(task, ports); },
            flow::node_priority_t{2}) {}

  void with_band(Batch& batch) override { begin_.try_put(&batch); }

 private:
  void connect() override {
    Lane::connect(carry_);
    flow::make_edge(flow::output_port<0>(carry_), begin_);
    flow::make_edge(flow::output_port<0>(begin_), compute_);
    flow::make_edge(flow::output_port<1>(begin_), shared_.reduce);
    flow::make_edge(flow::output_port<0>(compute_), shared_.reduce);
  }

  template <class Ports>
  void carry(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.carry.add_wait(batch.ready);
    std::vector<Batch*> ready;
    carry_stage_.run(ready, batch);
    for (Batch* complete : ready) {
      // A batch without work needs no band.
      if (makes_images(*complete) && !complete->skip()) {
        emit_->give_band(*give(*complete));
      } else {
        std::get<0>(ports).try_put(give(*complete));
      }
    }
  }

  /// Its turn has come, and it has its band where it makes images.
  template <class Ports>
  void begin(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    const std::size_t tasks = compute_stage_.tasks(batch);
    if (tasks == 0 && emit_ != nullptr) emit(*emit_, batch);
    fan_out(batch, tasks, std::get<0>(ports), std::get<1>(ports),
            [this, &batch](std::size_t i) { return compute_stage_.task(batch, i); });
  }

  template <class Ports>
  void compute(const ComputeTask& task, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(*task.batch);
    if (task.block.column == task.batch->columns(task.op).first) shared_.context.compute.add_wait(task.batch->ready);
    compute_stage_.run(task);
    // Only the last task of a batch may touch it after this.
    if (!is_last(*task.batch)) return;
    if (emit_ != nullptr) emit(*emit_, *task.batch);
    std::get<0>(ports).try_put(give(*task.batch));
  }

  CarryStage& carry_stage_;
  ComputeStage& compute_stage_;
  EmitStage* emit_;  ///< null without images
  flow::multifunction_node<Batch*, std::tuple<Batch*>> carry_;
  flow::multifunction_node<Batch*, std::tuple<ComputeTask, Batch*>> begin_;
  flow::multifunction_node<ComputeTask, std::tuple<Batch*>> compute_;
};

}  // namespace

std::unique_ptr<Lane> make_cpu_lane(const Lane::Shared& shared, CarryStage& carry, ComputeStage& compute,
                                    EmitStage* emit) {
  return std::make_unique<CpuLane>(shared, carry, compute, emit);
}

}  // namespace slidestream
