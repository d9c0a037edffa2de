#include "stages/lane.hpp"

#include <exception>
#include <utility>

#include <slidestream/error.hpp>

#include "stages/emit.hpp"
#include "stages/images/copied_tiles.hpp"
#include "stages/run_threads.hpp"

namespace slidestream {

namespace flow = tbb::flow;

namespace {

std::size_t readers(const RunContext& context) {
  return reading_threads(static_cast<std::size_t>(context.threads), context.gpus == nullptr ? 0 : context.lanes);
}

}  // namespace

Lane::Lane(const Shared& shared, std::size_t index)
    : shared_(shared),
      index_(index),
      depth_(static_cast<std::size_t>(shared.context.config.pipeline.queue_depth)),
      batches_(depth_),
      tokens_(shared.graph),
      pool_(depth_, shared.context.limits.slot_bytes, [this] { give_token(); }),
      io_(readers(shared.context)),
      strips_(shared.graph),
      join_(shared.graph),
      admit_(shared.graph, flow::serial, [this](const Admission& admission) { return admit(admission); }),
      read_(shared.graph, flow::unlimited,
            [this](Batch* batch, ReadNode::gateway_type& gateway) { start_read(*batch, gateway); }),
      split_(shared.graph, flow::unlimited,
             [this](Batch* batch, auto& ports) {
               const runtime::GraphLifetime::Body body(shared_.lifetime);
               take(*batch);
               const std::size_t tasks = shared_.decode.tasks(*batch);
               if (tasks > 0) shared_.context.decode.add_wait(batch->ready);
               fan_out(*batch, tasks, std::get<0>(ports), std::get<1>(ports),
                       [this, batch](std::size_t i) { return shared_.decode.task(*batch, i); });
             }),
      decode_(
          shared.graph, flow::unlimited,
          [this](const TileRun& tiles, auto& ports) {
            const runtime::GraphLifetime::Body body(shared_.lifetime);
            take(*tiles.batch);
            shared_.decode.run(tiles);
            if (is_last(*tiles.batch)) std::get<0>(ports).try_put(give(*tiles.batch));
          },
          flow::node_priority_t{1}) {}

void Lane::give_token() {
  if (!ending_) tokens_.try_put({});
}

Lane::~Lane() {
  ending_ = true;
  // Matters after an exception only: slots go back while their pools live.
  for (Batch& batch : batches_) {
    batch.slide.reset();
    batch.slot.reset();
  }
}

void Lane::connect(flow::receiver<Batch*>& decoded) {
  flow::make_edge(strips_, flow::input_port<0>(join_));
  flow::make_edge(tokens_, flow::input_port<1>(join_));
  flow::make_edge(join_, admit_);
  flow::make_edge(admit_, read_);
  flow::make_edge(read_, split_);
  flow::make_edge(flow::output_port<0>(split_), decode_);
  flow::make_edge(flow::output_port<1>(split_), decoded);
  flow::make_edge(flow::output_port<0>(decode_), decoded);
}

/// Where an image takes over the slide's own tiles: their bytes leave the slot with the band.
void Lane::copy_tiles(Batch& batch) const {
  const CopiedLevelPtr& level = batch.slide->images->copied;
  if (level == nullptr) return;
  guarded(shared_.context, "encode", batch, [&] {
    const runtime::StageMeter::Busy busy(shared_.context.encode);
    std::int64_t at = 0;
    try {
      batch.band->copied = std::make_shared<const CopiedTiles>(batch, level, at);
    } catch (const TileError& error) {
      batch.slide->fail("encode", text_of_tile(*batch.slide, at) + " can't be copied: " + error.what(),
                        {batch.strip_index, at}, at);
    }
  });
}

void Lane::emit(EmitStage& stage, Batch& batch) const {
  if (!makes_images(batch)) return;
  // A batch that closes a chain without work says nothing of a strip.
  if (!batch.skip() && batch.band != nullptr) copy_tiles(batch);
  std::shared_ptr<Band> band = batch.skip() ? nullptr : std::move(batch.band);
  batch.band.reset();
  stage.emit(batch.slide, batch.slide->images, batch.strip_of_chain(), std::move(band));
}

void Lane::start() {
  connect();
  for (std::size_t i = 0; i < depth_; ++i) tokens_.try_put({});
  ask_for_strip();
}

void Lane::ask_for_strip() {
  shared_.graph.reserve_wait();
  asking_.submit([this] {
    {
      const runtime::GraphLifetime::Body body(shared_.lifetime);
      put_next_strip();
    }
    shared_.graph.release_wait();
  });
}

void Lane::put_next_strip() {
  const runtime::Turn turn(source_turn_);
  StripMessage message;
  try {
    if (!shared_.source.next(message, index_)) return;
    message.number = sent_++;
  } catch (...) {
    message.error = std::current_exception();
  }
  strips_.try_put(message);
}

Batch* Lane::admit(const Admission& admission) {
  const runtime::GraphLifetime::Body body(shared_.lifetime);
  source_turn_.take();
  const StripMessage& message = std::get<0>(admission);
  if (message.error) std::rethrow_exception(message.error);
  auto slot = pool_.try_acquire();
  if (!slot) throw Error("internal: a token without a free slot");
  Batch& batch = batches_[slot->index()];
  batch.handoff.take();
  batch.lane = index_;
  batch.number = message.number;
  batch.slot = std::move(*slot);
  batch.slide = message.slide;
  batch.chain = message.chain;
  batch.strip_index = message.strip_index;
  batch.empty = message.empty;
  batch.last = message.last;
  batch.strip = message.empty ? StripPlan{} : message.slide->plan.strips[message.strip_index];
  batch.sums.reset(static_cast<std::size_t>(shared_.context.config.analysis.bins));
  batch.missing_tiles = 0;
  batch.bad_tiles = 0;
  batch.fallback_tiles = 0;
  batch.decode_on_device = message.slide->decode_on_device;
  ask_for_strip();
  return give(batch);
}

void Lane::start_read(Batch& batch, ReadNode::gateway_type& gateway) {
  const runtime::GraphLifetime::Body body(shared_.lifetime);
  gateway.reserve_wait();
  take(batch);
  runtime::ReadingThreads::Job job;
  job.begin = [this, &batch] {
    const runtime::GraphLifetime::Body io_body(shared_.lifetime);
    return shared_.read.begin(batch);
  };
  job.part = [this, &batch] {
    const runtime::GraphLifetime::Body io_body(shared_.lifetime);
    return shared_.read.run(batch);
  };
  job.end = [this, &batch, &gateway] {
    const runtime::GraphLifetime::Body io_body(shared_.lifetime);
    gateway.try_put(give(batch));
    gateway.release_wait();
  };
  // The graph's threads come here in any order.
  io_.submit(batch.number, std::move(job));
}

}  // namespace slidestream
