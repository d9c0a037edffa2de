#include <algorithm>
#include <cstdint>
#include <utility>

#include "stages/carry.hpp"
#include "stages/emit.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/images/parcel.hpp"
#include "stages/lane.hpp"
#include "stages/range_payload.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {
namespace {

namespace flow = tbb::flow;

/// Tiles that a task decodes after all: rare ones, so that few at a time are enough.
constexpr std::size_t kTilesPerPatching = 8;

/// A parcel of a batch.
struct Cargo {
  Batch* batch = nullptr;
  std::size_t parcel = 0;
};

class GpuLane final : public Lane {
 public:
  GpuLane(const Shared& shared, std::size_t index, GpuSet& gpus, EmitStage* emit)
      : Lane(shared, index),
        gpus_(gpus),
        emit_(emit),
        carry_stage_(make_device_carry_stage(shared.context)),
        send_(
            shared.graph, flow::unlimited,
            [this](Batch* batch, AsyncNode::gateway_type& gateway) { send(*batch, gateway); },
            flow::node_priority_t{3}),
        upload_(
            shared.graph, flow::serial, [this](Batch* batch, auto& ports) { upload(*batch, ports); },
            flow::node_priority_t{3}),
        decode_(
            shared.graph, flow::serial,
            [this](Batch* batch, AsyncNode::gateway_type& gateway) { decode(*batch, gateway); },
            flow::node_priority_t{3}),
        check_(
            shared.graph, flow::unlimited, [this](Batch* batch, auto& ports) { check(*batch, ports); },
            flow::node_priority_t{3}),
        again_(
            shared.graph, flow::unlimited,
            [this](Batch* batch, AsyncNode::gateway_type& gateway) { read_again(*batch, gateway); },
            flow::node_priority_t{3}),
        flagged_(
            shared.graph, flow::unlimited, [this](Batch* batch, auto& ports) { decode_flagged(*batch, ports); },
            flow::node_priority_t{3}),
        patch_(
            shared.graph, flow::unlimited, [this](const TileRun& tiles, auto& ports) { patch(tiles, ports); },
            flow::node_priority_t{2}),
        place_(
            shared.graph, flow::unlimited,
            [this](Batch* batch, AsyncNode::gateway_type& gateway) { place(*batch, gateway); },
            flow::node_priority_t{3}),
        carry_(
            shared.graph, flow::serial, [this](Batch* batch, auto& ports) { carry(*batch, ports); },
            flow::node_priority_t{3}),
        // Serial, and a queue: batches reach the stream in the order in which the carry stage let them go.
        compute_(
            shared.graph, flow::serial,
            [this](Batch* batch, AsyncNode::gateway_type& gateway) { compute(*batch, gateway); },
            flow::node_priority_t{3}),
        pack_(
            shared.graph, flow::serial, [this](Batch* batch, auto& ports) { pack(*batch, ports); },
            flow::node_priority_t{3}),
        download_(
            shared.graph, flow::serial,
            [this](const Cargo& cargo, DownloadNode::gateway_type& gateway) { download(cargo, gateway); },
            flow::node_priority_t{4}),
        put_(
            shared.graph, flow::unlimited, [this](const Cargo& cargo, auto& ports) { put(cargo, ports); },
            flow::node_priority_t{4}),
        collect_(
            shared.graph, flow::unlimited, [this](Batch* batch) { return collect(*batch); }, flow::node_priority_t{2}) {
  }

  ~GpuLane() override { gpus_.finish(index_); }
  GpuLane(const GpuLane&) = delete;
  GpuLane& operator=(const GpuLane&) = delete;

 private:
  using AsyncNode = flow::async_node<Batch*, Batch*>;
  using DownloadNode = flow::async_node<Cargo, Cargo>;

  void with_band(Batch& batch) override { compute_.try_put(&batch); }
  void with_parcel(Batch& batch, std::size_t parcel) override { download_.try_put({&batch, parcel}); }

  void connect() override {
    Lane::connect(send_);
    flow::make_edge(send_, upload_);
    flow::make_edge(flow::output_port<0>(upload_), carry_);
    flow::make_edge(flow::output_port<1>(upload_), decode_);
    flow::make_edge(decode_, check_);
    flow::make_edge(flow::output_port<0>(check_), carry_);
    flow::make_edge(flow::output_port<1>(check_), again_);
    flow::make_edge(again_, flagged_);
    flow::make_edge(flow::output_port<0>(flagged_), patch_);
    flow::make_edge(flow::output_port<1>(flagged_), place_);
    flow::make_edge(patch_, place_);
    flow::make_edge(place_, check_);
    flow::make_edge(flow::output_port<0>(carry_), compute_);
    flow::make_edge(compute_, pack_);
    flow::make_edge(flow::output_port<0>(pack_), collect_);
    flow::make_edge(download_, put_);
    flow::make_edge(flow::output_port<0>(put_), collect_);
    flow::make_edge(collect_, shared_.reduce);
  }

  /// What of a batch is in the host's slot goes to the device by the ring.
  void send(Batch& batch, AsyncNode::gateway_type& gateway) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    if (!batch.has_bytes_to_send()) {
      gateway.try_put(give(batch));
      return;
    }
    gateway.reserve_wait();
    const auto end = [this, &batch, &gateway] {
      {
        const runtime::GraphLifetime::Body io_body(shared_.lifetime);
        gateway.try_put(give(batch));
      }
      gateway.release_wait();
    };
    submit(batch, sending(
                      batch, [this, &batch] { return gpus_.begin_sending(batch); }, end));
  }

  /// The threads that read send pieces, all that are free.
  template <class Begin, class End>
  runtime::ReadingThreads::Job sending(Batch& batch, const Begin& begin, const End& end) {
    runtime::ReadingThreads::Job job;
    job.begin = [this, &batch, begin] {
      const runtime::GraphLifetime::Body body(shared_.lifetime);
      std::size_t pieces = 0;
      guarded(shared_.context, "upload", batch, [&] { pieces = begin(); });
      return pieces;
    };
    job.part = [this, &batch] {
      const runtime::GraphLifetime::Body body(shared_.lifetime);
      if (batch.skip()) return false;
      try {
        return gpus_.send_piece(batch);
      } catch (...) {
        shared_.context.fail("upload", *batch.slide, std::current_exception(), {batch.strip_index, 0});
        return false;
      }
    };
    job.end = end;
    return job;
  }

  template <class Ports>
  void upload(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.upload.add_wait(batch.ready);
    {
      const runtime::StageMeter::Handing handing(shared_.context.upload, payload_of(batch));
      guarded(shared_.context, "upload", batch, [&] { gpus_.upload(batch); });
    }
    if (batch.decode_on_device && !batch.skip()) {
      std::get<1>(ports).try_put(give(batch));
    } else {
      std::get<0>(ports).try_put(give(batch));
    }
  }

  void decode(Batch& batch, AsyncNode::gateway_type& gateway) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.device_decode.add_wait(batch.ready);
    const runtime::StageMeter::Handing handing(shared_.context.device_decode, payload_of(batch));
    guarded(shared_.context, "decode-gpu", batch, [] {});
    gpus_.decode(batch, come_back(batch, gateway, "decode-gpu"));
  }

  /// Tiles that the device didn't vouch for are decoded on the CPU, as many at a time as there is room for.
  template <class Ports>
  void check(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    batch.patched += batch.patching;
    batch.patching = 0;
    if (batch.skip() || batch.patched == batch.flagged.size()) {
      std::get<0>(ports).try_put(give(batch));
      return;
    }
    const std::size_t room =
        (batch.slot.memory().size() - batch.patches_offset) / static_cast<std::size_t>(batch.patch_bytes());
    batch.patching = std::min(room, batch.flagged.size() - batch.patched);
    std::get<1>(ports).try_put(give(batch));
  }

  /// Flagged tiles that the device has alone are read again, in turn: some share bytes.
  void read_again(Batch& batch, AsyncNode::gateway_type& gateway) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    if (batch.bytes == BytesGo::to_slot) {
      gateway.try_put(give(batch));
      return;
    }
    gateway.reserve_wait();
    runtime::ReadingThreads::Job job;
    job.begin = [] { return std::size_t{1}; };
    job.part = [this, &batch] {
      const runtime::GraphLifetime::Body io_body(shared_.lifetime);
      shared_.read.read_again(batch);
      return false;
    };
    job.end = [this, &batch, &gateway] {
      {
        const runtime::GraphLifetime::Body io_body(shared_.lifetime);
        gateway.try_put(give(batch));
      }
      gateway.release_wait();
    };
    submit(batch, std::move(job));
  }

  template <class Ports>
  void decode_flagged(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    const std::size_t first = batch.patched;
    const std::size_t count = batch.patching;
    fan_out(batch, (count + kTilesPerPatching - 1) / kTilesPerPatching, std::get<0>(ports), std::get<1>(ports),
            [&batch, first, count](std::size_t i) {
              const std::size_t begin = i * kTilesPerPatching;
              return TileRun{&batch, first + begin, std::min(kTilesPerPatching, count - begin)};
            });
  }

  template <class Ports>
  void patch(const TileRun& tiles, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(*tiles.batch);
    shared_.decode.run_flagged(tiles);
    if (is_last(*tiles.batch)) std::get<0>(ports).try_put(give(*tiles.batch));
  }

  void place(Batch& batch, AsyncNode::gateway_type& gateway) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    const auto end = [this, &batch, done = come_back(batch, gateway, "upload")] {
      const runtime::GraphLifetime::Body io_body(shared_.lifetime);
      gpus_.patch(batch, done);
    };
    submit(batch, sending(
                      batch, [this, &batch] { return gpus_.begin_patching(batch); }, end));
  }

  template <class Ports>
  void carry(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.carry.add_wait(batch.ready);
    std::vector<Batch*> ready;
    carry_stage_->run(ready, batch);
    for (Batch* complete : ready) {
      // Batches without work too: what follows on the stream is behind what came before.
      if (makes_images(*complete) && !complete->slide->levels_on_device) {
        emit_->give_band(*give(*complete));
      } else {
        std::get<0>(ports).try_put(give(*complete));
      }
    }
  }

  void compute(Batch& batch, AsyncNode::gateway_type& gateway) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.compute.add_wait(batch.ready);
    const runtime::StageMeter::Handing handing(shared_.context.compute, payload_of(batch));
    gpus_.compute(batch, come_back(batch, gateway, "compute"));
  }

  template <class Ports>
  void pack(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    const runtime::Turn turn(pack_turn_);
    take(batch);
    // Batches come as the device's thread hears of them. They ask for output slots in row order.
    Chain& chain = *batch.chain;
    chain.computed.emplace(batch.strip_of_chain(), &batch);
    std::vector<Batch*> ready;
    for (auto next = chain.computed.begin(); next != chain.computed.end() && next->first == chain.packed;
         next = chain.computed.erase(next)) {
      ready.push_back(next->second);
      ++chain.packed;
    }
    // The chain goes away with its last batch.
    for (Batch* each : ready) pack_in_order(*each, ports);
  }

  template <class Ports>
  void pack_in_order(Batch& batch, Ports& ports) {
    batch.parcels.clear();
    if (makes_images(batch) && batch.slide->levels_on_device) {
      // What was made of a slide that fails, or is left, isn't worth the room that it takes.
      if (batch.skip()) batch.slide->images->drop();
      guarded(shared_.context, "collect", batch, [&] { gpus_.pack(batch); });
    }
    if (batch.parcels.empty()) {
      std::get<0>(ports).try_put(give(batch));
      return;
    }
    batch.tasks_left.store(static_cast<std::int64_t>(batch.parcels.size()), std::memory_order_relaxed);
    emit_->give_parcels(*give(batch));
  }

  void download(const Cargo& cargo, DownloadNode::gateway_type& gateway) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    Batch& batch = *cargo.batch;
    take(batch);
    gateway.reserve_wait();
    gpus_.download(batch, *batch.parcels[cargo.parcel], [this, cargo, &gateway](const std::exception_ptr& failure) {
      {
        const runtime::GraphLifetime::Body done(shared_.lifetime);
        take(*cargo.batch);
        if (failure) shared_.context.fail("compute", *cargo.batch->slide, failure, {cargo.batch->strip_index, 0});
        cargo.batch->handoff.give();
        gateway.try_put(cargo);
      }
      gateway.release_wait();
    });
  }

  template <class Ports>
  void put(const Cargo& cargo, Ports& ports) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    Batch& batch = *cargo.batch;
    take(batch);
    emit_->put(*batch.slide, batch.slide->images, *batch.parcels[cargo.parcel]);
    batch.parcels[cargo.parcel].reset();
    // Only the last parcel of a batch may touch it after this.
    if (is_last(batch)) std::get<0>(ports).try_put(give(batch));
  }

  Batch* collect(Batch& batch) {
    const runtime::GraphLifetime::Body body(shared_.lifetime);
    take(batch);
    shared_.context.collect.add_wait(batch.ready);
    runtime::StageMeter::Busy busy(shared_.context.collect, payload_of(batch));
    guarded(shared_.context, "collect", batch, [&] {
      gpus_.collect(batch);
      busy.add(1, batch.sums.windows * 2 * sizeof(double));
    });
    if (emit_ != nullptr && !batch.slide->levels_on_device) emit(*emit_, batch);
    return give(batch);
  }

  /// How a batch comes back into the graph from a device's stream. From now on the graph waits for it.
  GpuSet::Done come_back(Batch& batch, AsyncNode::gateway_type& gateway, const char* stage) {
    GpuSet::Done done = [this, &batch, &gateway, stage](const std::exception_ptr& failure) {
      {
        const runtime::GraphLifetime::Body body(shared_.lifetime);
        take(batch);
        if (failure) shared_.context.fail(stage, *batch.slide, failure, {batch.strip_index, 0});
        gateway.try_put(give(batch));
      }
      // The device's thread outlives the graph, which may go away as soon as it doesn't wait any more.
      gateway.release_wait();
    };
    gateway.reserve_wait();
    return done;
  }

  GpuSet& gpus_;
  EmitStage* emit_;  ///< null where no operator makes files
  std::unique_ptr<CarryStage> carry_stage_;
  runtime::Handoff pack_turn_;
  AsyncNode send_;
  flow::multifunction_node<Batch*, std::tuple<Batch*, Batch*>> upload_;
  AsyncNode decode_;
  flow::multifunction_node<Batch*, std::tuple<Batch*, Batch*>> check_;
  AsyncNode again_;
  flow::multifunction_node<Batch*, std::tuple<TileRun, Batch*>> flagged_;
  flow::multifunction_node<TileRun, std::tuple<Batch*>> patch_;
  AsyncNode place_;
  flow::multifunction_node<Batch*, std::tuple<Batch*>> carry_;
  AsyncNode compute_;
  flow::multifunction_node<Batch*, std::tuple<Batch*>> pack_;
  DownloadNode download_;
  flow::multifunction_node<Cargo, std::tuple<Batch*>> put_;
  flow::function_node<Batch*, Batch*> collect_;
};

}  // namespace

std::unique_ptr<Lane> make_gpu_lane(const Lane::Shared& shared, std::size_t index, GpuSet& gpus, EmitStage* emit) {
  return std::make_unique<GpuLane>(shared, index, gpus, emit);
}

}  // namespace slidestream
