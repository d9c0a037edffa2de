#include <utility>

#include "stages/carry.hpp"
#include "stages/gpu.hpp"
#include "stages/lane.hpp"
#include "stages/range_payload.hpp"

namespace slidestream {
namespace {

namespace flow = tbb::flow;

class GpuLane final : public Lane {
 public:
  GpuLane(const Shared& shared, std::size_t index, GpuSet& gpus)
      : Lane(shared, index),
        gpus_(gpus),
        carry_stage_(make_device_carry_stage(shared.context)),
        // Serial, so that copies and their events follow each other on the stream as they belong together.
        upload_(
            shared.graph, flow::serial, [this](Batch* batch) { return upload(*batch); }, flow::node_priority_t{3}),
        carry_(
            shared.graph, flow::serial, [this](Batch* batch, auto& ports) { carry(*batch, ports); },
            flow::node_priority_t{3}),
        // Serial, and a queue: batches reach the stream in the order in which the carry stage let them go.
        compute_(
            shared.graph, flow::serial,
            [this](Batch* batch, ComputeNode::gateway_type& gateway) { compute(*batch, gateway); },
            flow::node_priority_t{3}),
        collect_(
            shared.graph, flow::unlimited, [this](Batch* batch) { return collect(*batch); }, flow::node_priority_t{2}) {
    gpus.adopt(index, slots());
    connect_decoded(upload_);
    flow::make_edge(upload_, carry_);
    flow::make_edge(flow::output_port<0>(carry_), compute_);
    flow::make_edge(compute_, collect_);
    flow::make_edge(collect_, shared.reduce);
  }

 private:
  using CarryNode = flow::multifunction_node<Batch*, std::tuple<Batch*>>;
  using ComputeNode = flow::async_node<Batch*, Batch*>;

  Batch* upload(Batch& batch) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.upload.add_wait(batch.ready);
    const runtime::StageMeter::Handing handing(shared_.context.upload, payload_of(batch));
    guarded(shared_.context, "upload", batch, [&] { gpus_.upload(batch); });
    return give(batch);
  }

  template <class Ports>
  void carry(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.carry.add_wait(batch.ready);
    std::vector<Batch*> ready;
    carry_stage_->run(ready, batch);
    for (Batch* complete : ready) std::get<0>(ports).try_put(give(*complete));
  }

  void compute(Batch& batch, ComputeNode::gateway_type& gateway) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.compute.add_wait(batch.ready);
    const runtime::StageMeter::Handing handing(shared_.context.compute, payload_of(batch));
    gateway.reserve_wait();
    gpus_.compute(batch, [this, &batch, &gateway](std::exception_ptr failure) {
      const runtime::GraphLifetime::Body done_body(shared_.lifetime);
      take(batch);
      if (failure) {
        guarded(shared_.context, "compute", batch, [&] { std::rethrow_exception(failure); });
      }
      gateway.try_put(give(batch));
      gateway.release_wait();
    });
  }

  Batch* collect(Batch& batch) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.collect.add_wait(batch.ready);
    const runtime::StageMeter::Busy busy(shared_.context.collect, payload_of(batch));
    guarded(shared_.context, "collect", batch, [&] {
      gpus_.collect(batch);
      shared_.context.collect.add(1, batch.sums.windows * 2 * sizeof(double));
    });
    return give(batch);
  }

  GpuSet& gpus_;
  std::unique_ptr<CarryStage> carry_stage_;
  flow::function_node<Batch*, Batch*> upload_;
  CarryNode carry_;
  ComputeNode compute_;
  flow::function_node<Batch*, Batch*> collect_;
};

}  // namespace

std::unique_ptr<Lane> make_gpu_lane(const Lane::Shared& shared, std::size_t index, GpuSet& gpus) {
  return std::make_unique<GpuLane>(shared, index, gpus);
}

}  // namespace slidestream
