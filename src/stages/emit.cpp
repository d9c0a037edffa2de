#include "stages/emit.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>

#include "stages/gpu/gpu_set.hpp"
#include "stages/images/copied_tiles.hpp"
#include "stages/images/output_turns.hpp"
#include "stages/images/tile_writer.hpp"
#include "stages/networks.hpp"
#include "stages/parallel.hpp"
#include "stages/range_payload.hpp"

namespace slidestream {
namespace {

namespace flow = tbb::flow;

/// A strip that was computed, or (with `slide` null) the news that the images' band is reduced.
struct Made {
  std::shared_ptr<SlideRun> slide;
  std::shared_ptr<SlideImages> images;
  std::size_t strip = 0;
  std::shared_ptr<Band> band;
};
/// Some columns of the band that is being reduced.
struct Piece {
  std::shared_ptr<SlideImages> images;
  std::size_t image = 0;
  int piece = 0;
};
class Emit final : public EmitStage {
 public:
  explicit Emit(EmitSurroundings surroundings)
      : context_(surroundings.context),
        graph_(surroundings.graph),
        lifetime_(surroundings.lifetime),
        delivery_(surroundings.delivery),
        with_band_(std::move(surroundings.with_band)),
        with_parcel_(std::move(surroundings.with_parcel)),
        turns_([this](const OutputTurns::Turn& turn) { attach_.try_put(turn); }),
        helpers_(graph_, lifetime_, context_.threads),
        networks_(make_all_networks()),
        pool_(
            context_.limits.output_slots, context_.limits.output_bytes, [this] { slot_came_back(); },
            context_.gpus == nullptr ? runtime::SlotPool::Start::ready : runtime::SlotPool::Start::not_ready),
        attach_(graph_, flow::serial, Attach{this}),
        order_(
            graph_, flow::serial, [this](const Made& made) { return take(made); }, flow::node_priority_t{4}),
        reduce_(
            graph_, flow::unlimited, [this](const Piece& piece) { return reduce(piece); }, flow::node_priority_t{4}),
        tiles_(context_, graph_, lifetime_, [this](const std::shared_ptr<SlideImages>& images) {
          if (networks_ != nullptr) networks_->look_at(images);
        }) {
    for (std::size_t i = pool_.not_ready(); i < pool_.size(); ++i) turns_.slot_came_back();
  }

  ~Emit() override { close(); }

  void start() override {
    closed_.store(false);
    if (pool_.not_ready() == 0) return;
    // The graph waits for them, also where no task of it is under way.
    graph_.reserve_wait();
    pinned_ = context_.gpus->pin_outputs(pool_, context_.on_fatal, [this] { graph_.release_wait(); });
  }

  std::shared_ptr<SlideImages> open(const SlideRun& slide, const ImageNames& names) override {
    const bool any_file = context_.makes_images || std::ranges::any_of(slide.parameters, [](const auto& parameters) {
                            return parameters != nullptr && !parameters->files().empty();
                          });
    if (!any_file) return nullptr;
    auto made = std::make_unique<SlideImages>(context_, slide, names);
    std::shared_ptr<SlideImages> images(made.release(),
                                        [this](SlideImages* last) { finish(std::unique_ptr<SlideImages>(last)); });
    if (networks_ != nullptr) networks_->open(images, slide.index);
    return images;
  }

  void nothing_of(const SlideRun& slide) override {
    if (networks_ != nullptr) networks_->nothing_of(slide.index);
  }

  void give_band(Batch& batch) override {
    if (networks_ == nullptr || batch.slide->images == nullptr) return turns_.ask(batch, 1);
    networks_->when_let_in(batch.slide->images, [this, &batch] {
      if (!closed_.load()) turns_.ask(batch, 1);
    });
  }

  void give_parcels(Batch& batch) override { turns_.ask(batch, batch.parcels.size()); }

  void put(const SlideRun& slide, const std::shared_ptr<SlideImages>& images, const Parcel& parcel) override {
    if (slide.failed() || slide.abandoned.load()) images->drop();
    tiles_.send(images, parcel);
  }

  void emit(const std::shared_ptr<SlideRun>& slide, const std::shared_ptr<SlideImages>& images, std::size_t strip,
            std::shared_ptr<Band> band) override {
    images->handoff.give();
    order_.try_put({slide, images, strip, std::move(band)});
  }

  void hand_over(std::shared_ptr<SlideImages> images, SlideResult&& result, std::size_t index,
                 std::function<void(SlideResult&)> conclude) override {
    images->finished = {std::move(result), index, std::move(conclude)};
    images->handoff.give();
    // Until it is delivered.
    graph_.reserve_wait();
  }

  void close() noexcept override {
    closed_.store(true);
    if (networks_ != nullptr) networks_->close();
    if (pinned_ != nullptr) pinned_->stop();
  }

 private:
  std::unique_ptr<Networks> make_all_networks() {
    if (!context_.has_networks) return nullptr;
    return make_networks(
        {context_, graph_, lifetime_, helpers_,
         [this](const std::shared_ptr<SlideImages>& images, std::size_t image, const ConstHostView& rows,
                const std::shared_ptr<runtime::Slot>& slot) { put_rows(images, image, rows, slot); }});
  }

  void slot_came_back() {
    if (!closed_.load()) turns_.slot_came_back();
  }

  /// This may be a thread's first step in the graph, as nowhere else, and before it is in `attach` nothing of ours has
  /// told it of the graph's making (scripts/tsan.supp).
  struct Attach {
    Emit* emit;
    flow::continue_msg operator()(const OutputTurns::Turn& turn) const { return emit->attach(turn); }
  };

  flow::continue_msg attach(const OutputTurns::Turn& turn) {
    // Before anything is read: this may be a thread's first step in the graph, and nothing else orders it.
    Batch& batch = *turn.batch;
    batch.handoff.take();
    const runtime::GraphLifetime::Body body(lifetime_);
    auto slot = pool_.try_acquire();
    if (!slot) throw Error("internal: a turn without a free output slot");
    if (batch.slide->levels_on_device) {
      batch.parcels[turn.number]->slot = std::make_shared<runtime::Slot>(std::move(*slot));
      batch.handoff.give();
      with_parcel_(batch, turn.number);
      return {};
    }
    auto band = std::make_shared<Band>();
    band->slot = std::make_shared<runtime::Slot>(std::move(*slot));
    band->images.resize(context_.operators.size());
    std::byte* at = band->slot->memory().data();
    // One that has no work passes through for the sake of the order.
    for (std::size_t op = 0; op < context_.operators.size() && !batch.skip(); ++op) {
      const std::int64_t pixel_bytes = context_.needs[op].image_bytes;
      if (pixel_bytes == 0 || batch.slide->lacks(context_.ranks[op])) continue;
      const Level& level = batch.slide->slide->info().levels[batch.slide->level];
      const OutputRange& rows = batch.rows(op);
      PixelView<MemorySpace::host>& view = band->images[op];
      view.data = at;
      view.rect = {0, rows.first, level.width, rows.count};
      view.image = {level.width, level.height};
      if (const NetworkPlan* const plan = batch.slide->images->resampled_on_devices(op)) {
        const std::int64_t first = plan->rows_within(rows.first);
        view.image = plan->stitch.input;
        view.rect = {0, first, view.image.width, plan->rows_within(rows.end()) - first};
      }
      view.pitch = image_pitch(view.image.width, pixel_bytes);
      view.format = *band_format_of(*context_.operators[op]);
      at += view.rect.height * view.pitch;
    }
    band->bytes = static_cast<std::size_t>(at - band->slot->memory().data());
    batch.band = std::move(band);
    batch.handoff.give();
    with_band_(batch);
    return {};
  }

  flow::continue_msg take(const Made& made) {
    const runtime::GraphLifetime::Body body(lifetime_);
    const runtime::Turn turn(turn_);
    SlideImages& images = *made.images;
    images.handoff.take();
    if (made.slide == nullptr) {
      if (!images.dropped()) send_tiles(made.images);
      images.reducing.reset();
      ++images.next;
    } else {
      // What was made of a slide that fails, or is left, isn't worth the room that it takes.
      const bool lost = made.band == nullptr || made.slide->failed() || made.slide->abandoned.load();
      if (lost) images.drop();
      if (!lost) images.waiting.emplace(made.strip, made.band);
    }
    if (images.dropped()) {
      images.waiting.clear();
      if (networks_ != nullptr) networks_->look_at(made.images);
      return {};
    }
    begin_next(made.images);
    return {};
  }

  void begin_next(const std::shared_ptr<SlideImages>& images) {
    const auto next = images->waiting.find(images->next);
    if (images->reducing != nullptr || next == images->waiting.end()) return;
    images->reducing = std::move(next->second);
    images->waiting.erase(next);
    for (std::size_t i = 0; i < images->networks.size(); ++i) {
      const PixelView<MemorySpace::host>& rows = images->reducing->images[images->networks[i].op];
      if (rows.rect.height > 0) networks_->put(images, i, rows, images->reducing->slot);
    }
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < images->images.size(); ++i) {
      SlideImages::Image& image = images->images[i];
      const PixelView<MemorySpace::host>& rows = images->reducing->images[image.op];
      if (rows.rect.height == 0 || image.of_network) continue;
      image.builder->begin(rows, images->reducing->slot);
      for (int piece = 0; piece < image.builder->pieces(); ++piece) pieces.push_back({images, i, piece});
    }
    if (pieces.empty()) {
      images->handoff.give();
      order_.try_put({nullptr, images, 0, nullptr});
      return;
    }
    images->pieces_left.store(static_cast<std::int64_t>(pieces.size()), std::memory_order_relaxed);
    images->handoff.give();
    for (const Piece& piece : pieces) reduce_.try_put(piece);
  }

  flow::continue_msg reduce(const Piece& piece) {
    const runtime::GraphLifetime::Body body(lifetime_);
    SlideImages& images = *piece.images;
    images.handoff.take();
    {
      const runtime::StageMeter::Busy busy(context_.encode);
      tiles_.guard(images, [&] { images.images[piece.image].builder->reduce(piece.piece); });
    }
    images.handoff.give();
    if (images.pieces_left.fetch_sub(1, std::memory_order_acq_rel) == 1)
      order_.try_put({nullptr, piece.images, 0, nullptr});
    return {};
  }

  /// The tiles that the reduced band completes, of all images.
  void send_tiles(const std::shared_ptr<SlideImages>& images) {
    for (std::size_t i = 0; i < images->images.size(); ++i) {
      SlideImages::Image& image = images->images[i];
      if (images->reducing->images[image.op].rect.height == 0 || image.of_network) continue;
      std::vector<PyramidTile> tiles = image.builder->finish();
      if (image.first_level > 0) put_below(tiles, image.first_level, *images->reducing->copied, image.sink->layout());
      tiles_.send(images, i, std::move(tiles), images->reducing->slot, images->reducing->copied);
    }
  }

  /// Rows that were put together from what a network gave.
  void put_rows(const std::shared_ptr<SlideImages>& images, std::size_t image, const ConstHostView& rows,
                const std::shared_ptr<runtime::Slot>& slot) {
    const runtime::StageMeter::Busy busy(context_.encode);
    PyramidBuilder& builder = *images->images[image].builder;
    tiles_.guard(*images, [&] {
      builder.begin(rows, slot);
      helpers_.for_all(static_cast<std::size_t>(builder.pieces()),
                       [&](std::size_t piece) { builder.reduce(static_cast<int>(piece)); });
      images->handoff.give();
      tiles_.send(images, image, builder.finish(), slot, nullptr);
    });
  }

  /// Nobody works on the images any more.
  void finish(std::unique_ptr<SlideImages> images) {
    if (closed_.load()) {
      discard(*images);
      return;
    }
    if (networks_ != nullptr && !images->networks.empty()) networks_->nothing_of(images->networks.front().slide);
    tiles_.submit([this, last = std::shared_ptr<SlideImages>(std::move(images))]() mutable {
      last->handoff.take();
      if (last->finished) {
        deliver(*last);
        graph_.release_wait();
      }
      // What is published stays.
      if (!last->finished || context_.output_failed.load()) discard(*last);
      last.reset();
    });
  }

  /// Partial images can be looked at, and are in nobody's way unless the disk is full: there the next run needs the
  /// room to begin at all.
  void discard(SlideImages& images) noexcept {
    if (context_.output_failed.load() || images.lacks_room()) {
      images.discard();
    } else {
      images.discard_empty();
    }
  }

  void deliver(SlideImages& images) {
    SlideImages::Finished& slide = *images.finished;
    if (!images.hear_networks()) return;
    if (slide.conclude) slide.conclude(slide.result);
    if (slide.result.done) {
      const runtime::StageMeter::Busy busy(context_.publish);
      tiles_.guard(images, [&] { images.publish(); });
      // Its files couldn't be written, and the run ends: it is made anew.
      if (images.dropped()) return;
    }
    delivery_.wait_for_room();
    delivery_.put(std::move(slide.result), slide.index, {});
  }

  RunContext& context_;
  flow::graph& graph_;
  runtime::GraphLifetime& lifetime_;
  Delivery& delivery_;
  std::function<void(Batch&)> with_band_;
  std::function<void(Batch&, std::size_t)> with_parcel_;
  std::atomic<bool> closed_{true};  ///< before the graph begins, and at its end after an exception
  runtime::Handoff turn_;           ///< of `order_`

  OutputTurns turns_;
  Helpers helpers_;
  std::unique_ptr<Networks> networks_;  ///< null where no operator has one
  runtime::SlotPool pool_;
  std::unique_ptr<GpuSet::PinnedOutputs> pinned_;  ///< null where no device copies to them
  flow::function_node<OutputTurns::Turn> attach_;
  flow::function_node<Made> order_;
  flow::function_node<Piece> reduce_;
  TileWriter tiles_;  ///< ends first
};

}  // namespace

std::unique_ptr<EmitStage> make_emit_stage(EmitSurroundings surroundings) {
  return std::make_unique<Emit>(std::move(surroundings));
}

}  // namespace slidestream
