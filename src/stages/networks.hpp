#pragma once

#include <oneapi/tbb/flow_graph.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/handoff.hpp"
#include "stages/images/slide_images.hpp"
#include "stages/parallel.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// Has the networks of a run's operators compute: their sessions, each with a thread that may block, and the batches of
/// tiles that these get.
///
/// Rows of a slide that come to `put` go to its `SlideNetwork`, which is advanced by the graph's threads. Batches are
/// bounded in number, and so are slides whose tiles are in memory: one more than lanes, in the order in which their
/// first bands were asked for. A slide that isn't let in gets no band, so that those that are never wait for an output
/// slot that it holds. A lane sends its slides one after the other: of two that are let in the first has been sent
/// whole, needs nothing that a later one holds, and comes to its end, and the next is let in.
///
/// Where a network's batches hold tiles of several slides (`NetworkTiles::mixed`), slides whose last tiles are in one
/// that isn't full wait for others. It goes as it is when no slide comes that could add to it: when all have given
/// their tiles, when one that waits keeps others out, or when nothing was added for ten seconds. Slides of fewer
/// tiles than a batch don't keep others out while they wait, up to a number. A batch that fails is computed again, in
/// halves, until the slides are alone whose tiles it fails with.
class Networks {
 public:
  struct Surroundings {
    RunContext& context;
    tbb::flow::graph& graph;
    runtime::GraphLifetime& lifetime;
    Helpers& helpers;
    /// Takes finished rows of an image, from a thread of the graph.
    std::function<void(const std::shared_ptr<SlideImages>&, std::size_t image, const ConstHostView& rows,
                       std::shared_ptr<runtime::Slot>)>
        made;
  };
  virtual ~Networks() = default;

  /// The graph has come to its end: from here on it gets no work, whatever slides that were never begun are told.
  virtual void close() noexcept = 0;

  /// Makes a slide's networks ready for rows: of the one of that index in the input.
  virtual void open(const std::shared_ptr<SlideImages>& images, std::size_t slide) = 0;

  /// Calls `go` when the slide may have bands of rows: at once, or later from any thread, in the order of the calls.
  /// Until its network takes the first the slide's own time stands still.
  virtual void when_let_in(const std::shared_ptr<SlideImages>& images, const std::function<void()>& go) = 0;

  /// No tiles of that slide will come, or no more. Thread-safe.
  virtual void nothing_of(std::size_t slide) = 0;

  /// Rows of the slide, in order, for `SlideImages::networks[network]`.
  virtual void put(const std::shared_ptr<SlideImages>& images, std::size_t network, const ConstHostView& rows,
                   std::shared_ptr<runtime::Slot> slot) = 0;

  /// The slide was dropped, or its time is over.
  virtual void look_at(const std::shared_ptr<SlideImages>& images) = 0;
};

/// Makes the sessions. \throws Error, ConfigError.
std::unique_ptr<Networks> make_networks(Networks::Surroundings surroundings);

}  // namespace slidestream
