#include <utility>

#include "stages/carry.hpp"
#include "stages/compute.hpp"
#include "stages/lane.hpp"

namespace slidestream {
namespace {

namespace flow = tbb::flow;

class CpuLane final : public Lane {
 public:
  CpuLane(const Shared& shared, CarryStage& carry_stage, ComputeStage& compute_stage)
      : Lane(shared, 0),
        carry_stage_(carry_stage),
        compute_stage_(compute_stage),
        carry_(
            shared.graph, flow::serial, [this](Batch* batch, auto& ports) { carry(*batch, ports); },
            flow::node_priority_t{3}),
        compute_(
            shared.graph, flow::unlimited, [this](const ComputeTask& task, auto& ports) { compute(task, ports); },
            flow::node_priority_t{2}) {}

 private:
  void connect() override {
    Lane::connect(carry_);
    flow::make_edge(flow::output_port<0>(carry_), compute_);
    flow::make_edge(flow::output_port<1>(carry_), shared_.reduce);
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
      const std::size_t tasks = compute_stage_.tasks(*complete);
      fan_out(*complete, tasks, std::get<0>(ports), std::get<1>(ports),
              [this, complete](std::size_t i) { return compute_stage_.task(*complete, i); });
    }
  }

  template <class Ports>
  void compute(const ComputeTask& task, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(*task.batch);
    if (task.block.column == task.batch->columns(task.op).first) shared_.context.compute.add_wait(task.batch->ready);
    // Only the last task of a batch may touch it after this.
    compute_stage_.run(task);
    join_tasks(*task.batch, std::get<0>(ports));
  }

  CarryStage& carry_stage_;
  ComputeStage& compute_stage_;
  flow::multifunction_node<Batch*, std::tuple<ComputeTask, Batch*>> carry_;
  flow::multifunction_node<ComputeTask, std::tuple<Batch*>> compute_;
};

}  // namespace

std::unique_ptr<Lane> make_cpu_lane(const Lane::Shared& shared, CarryStage& carry, ComputeStage& compute) {
  return std::make_unique<CpuLane>(shared, carry, compute);
}

}  // namespace slidestream
