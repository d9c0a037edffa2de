#pragma once

#include <oneapi/tbb/flow_graph.h>

#include <functional>
#include <memory>
#include <string>

#include "runtime/handoff.hpp"
#include "stages/delivery.hpp"
#include "stages/images/parcel.hpp"
#include "stages/images/slide_images.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// Makes files of the images that operators give: one for all lanes of a run.
///
/// Batches whose turn it is come to `give_band`, one after the other, and get a band of an output slot when one is
/// free, in that order; `with_band` takes them then. What was computed goes to `emit`. Behind that bands of a slide are
/// put back into row order, reduced to the levels of their pyramids by pieces, and cut into tiles, which are encoded by
/// any threads and written by threads that may wait. Batches of slides whose levels a device makes come to
/// `give_parcels` when that is done, and get a slot for each parcel; tiles that come in a parcel to `put` are written
/// as they are, or encoded. A slot comes back when the last tile that holds it is written, so storage that is too slow
/// holds back the whole graph. None of this needs a batch's slot, but for parcels that are still on the device.
class EmitStage {
 public:
  virtual ~EmitStage() = default;

  /// Called once, when the graph begins.
  virtual void start() = 0;

  /// Begins the files of a slide, whose parameters are there; null when it gets none. On a thread that may wait.
  /// \throws what `SlideImages` does.
  virtual std::shared_ptr<SlideImages> open(const SlideRun& slide, const ImageNames& names) = 0;

  /// There will be nothing of a slide that `open` gave nothing for, or wasn't called for. Thread-safe.
  virtual void nothing_of(const SlideRun& slide) = 0;

  /// A batch that is to have a band. In row order of its chain.
  virtual void give_band(Batch& batch) = 0;

  /// A batch with parcels, all of which are to have slots. In row order of its chain.
  virtual void give_parcels(Batch& batch) = 0;

  /// A parcel of a slide has its tiles in its slot.
  virtual void put(const SlideRun& slide, const std::shared_ptr<SlideImages>& images, const Parcel& parcel) = 0;

  /// A strip of a slide was computed: its band, or null where there is nothing of it. Every strip of a slide with
  /// images comes here once.
  virtual void emit(const std::shared_ptr<SlideRun>& slide, const std::shared_ptr<SlideImages>& images,
                    std::size_t strip, std::shared_ptr<Band> band) = 0;

  /// The slide's result: it is delivered when its files are whole. `conclude`, where there is one, is called before,
  /// when it is known whether the slide's networks came to their ends; on a thread that may wait. Called where the
  /// graph isn't idle, once a slide that got images; those that are let go of without are left unfinished.
  virtual void hand_over(std::shared_ptr<SlideImages> images, SlideResult&& result, std::size_t index,
                         std::function<void(SlideResult&)> conclude) = 0;

  /// Nothing is finished any more: the run ended with an exception. It is so before `start` as well.
  virtual void close() noexcept = 0;
};

/// What the stage needs of the run's graph.
struct EmitSurroundings {
  RunContext& context;
  tbb::flow::graph& graph;
  runtime::GraphLifetime& lifetime;
  Delivery& delivery;
  /// Takes batches that have their bands.
  std::function<void(Batch&)> with_band;
  /// Takes batches of which a parcel has its slot, once for each.
  std::function<void(Batch&, std::size_t parcel)> with_parcel;
};

std::unique_ptr<EmitStage> make_emit_stage(EmitSurroundings surroundings);

}  // namespace slidestream
