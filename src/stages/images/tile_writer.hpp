#pragma once

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/flow_graph.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "codec/tile_encoder.hpp"
#include "image/pyramid_builder.hpp"
#include "runtime/handoff.hpp"
#include "runtime/io_threads.hpp"
#include "runtime/slot_pool.hpp"
#include "stages/images/parcel.hpp"
#include "stages/images/slide_images.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

class CopiedTiles;

/// Some of the tiles that a band completed.
struct TilesToWrite {
  std::shared_ptr<SlideImages> images;
  std::size_t image = 0;
  std::shared_ptr<const std::vector<PyramidTile>> tiles;
  std::size_t first = 0;
  std::size_t count = 0;
  std::shared_ptr<runtime::Slot> slot;
  std::shared_ptr<const CopiedTiles> copied;  ///< those of level 0 as they are; null: they are encoded
};

/// Encodes tiles of images and gives them to their sinks, which threads that may wait write. The stage `EmitStage` owns
/// one for all lanes of a run. It owns these threads and the encoders. Any thread may call its members.
class TileWriter {
 public:
  /// \param on_drop  called where an image is dropped, as it can't be written
  TileWriter(RunContext& context, tbb::flow::graph& graph, runtime::GraphLifetime& lifetime,
             std::function<void(const std::shared_ptr<SlideImages>&)> on_drop);
  TileWriter(const TileWriter&) = delete;
  TileWriter& operator=(const TileWriter&) = delete;

  /// Encodes tiles that were made of an image and writes them. \param slot  holds their pixels. \param copied  the
  /// tiles of level 0 as files hold them; null: all tiles are encoded
  void send(const std::shared_ptr<SlideImages>& images, std::size_t image, std::vector<PyramidTile> made,
            const std::shared_ptr<runtime::Slot>& slot, const std::shared_ptr<const CopiedTiles>& copied);
  /// Writes the tiles of a parcel, and encodes those that aren't encoded.
  void send(const std::shared_ptr<SlideImages>& images, const Parcel& parcel);

  /// Runs `work` on a thread that may wait; the graph isn't idle before. The work lets go of what it holds.
  template <class Work>
  void submit(Work work) {
    graph_.reserve_wait();
    try {
      io_.submit([this, work = std::move(work)]() mutable {
        {
          const runtime::GraphLifetime::Body body(lifetime_);
          work();
        }
        graph_.release_wait();
      });
    } catch (...) {
      graph_.release_wait();
      throw;
    }
  }

  /// Runs `work` unless the images are dropped. A failure to write ends the run, and leaves the slide unfinished.
  template <class Work>
  void guard(SlideImages& images, Work&& work) noexcept {
    try {
      if (!images.dropped()) work();
    } catch (...) {
      fail(images, std::current_exception());
    }
  }

 private:
  /// Of tiles with one side.
  struct Encoder {
    int side = 0;
    std::unique_ptr<TileEncoder> encoder;
  };
  using Encoders = std::vector<Encoder>;  ///< by operator, made when first wanted

  void send_pixels(const std::shared_ptr<SlideImages>& images, const Parcel& parcel, const Parcel::Piece& piece);
  void send_encoded(const std::shared_ptr<SlideImages>& images, const Parcel& parcel, const Parcel::Piece& piece);
  tbb::flow::continue_msg encode(const TilesToWrite& work);
  static EncodedTile encoded_tile(const PyramidTile& tile, const TilesToWrite& work, TileEncoder& encoder);
  void drain(const std::shared_ptr<SlideImages>& images, std::size_t image);
  void fail(SlideImages& images, const std::exception_ptr& error) noexcept;

  RunContext& context_;
  tbb::flow::graph& graph_;
  runtime::GraphLifetime& lifetime_;
  std::function<void(const std::shared_ptr<SlideImages>&)> on_drop_;
  tbb::enumerable_thread_specific<Encoders> encoders_;
  tbb::flow::function_node<TilesToWrite> encode_;
  runtime::IoThreads io_;  ///< ends first
};

}  // namespace slidestream
