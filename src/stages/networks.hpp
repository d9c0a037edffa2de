#pragma once

#include <oneapi/tbb/flow_graph.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/handoff.hpp"
#include "stages/parallel.hpp"
#include "stages/slide_images.hpp"

namespace slidestream {

/// Has the networks of a run's operators compute: their sessions, each with a thread that may block, and the batches of
/// tiles that these get.
///
/// Rows of a slide that come to `put` go to its `SlideNetwork`, which is advanced by the graph's threads. Batches are
/// bounded in number, and so are slides whose tiles are in memory: one more than lanes, in the order in which their
/// first rows came. As a lane's slides get their output slots one after the other, of these at least one never waits
/// for a slot that another slide holds: it comes to its end, and the next is let in.
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

  /// Makes a slide's networks ready for rows.
  virtual void open(const std::shared_ptr<SlideImages>& images) = 0;

  /// Rows of the slide, in order, for `SlideImages::networks[network]`.
  virtual void put(const std::shared_ptr<SlideImages>& images, std::size_t network, const ConstHostView& rows,
                   std::shared_ptr<runtime::Slot> slot) = 0;

  /// The slide was dropped, or its time is over.
  virtual void look_at(const std::shared_ptr<SlideImages>& images) = 0;
};

/// Makes the sessions. \throws Error, ConfigError.
std::unique_ptr<Networks> make_networks(Networks::Surroundings surroundings);

}  // namespace slidestream
