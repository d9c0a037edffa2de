#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/network.hpp>

#include "runtime/trace.hpp"

/// \file
/// Batches of tiles on their way to a network: of one slide, or of several that share them.

namespace slidestream {

class SlideImages;

/// Memory of a batch: tiles that a network gets, and what it gives for them.
struct NetworkBatch {
  std::shared_ptr<std::uint8_t[]> pixels;
  std::shared_ptr<float[]> values;
  std::atomic<std::size_t> parts{0};  ///< that are still wanted by their slides
};

/// Tiles of one slide that stand side by side in a batch.
struct BatchPart {
  enum class State {
    filling,  ///< the batch isn't sent yet
    shared,   ///< it is, with tiles of other slides in it
    alone,    ///< it is, and is this slide's
  };

  std::shared_ptr<NetworkBatch> batch;
  std::size_t first = 0;            ///< place of the first in the batch
  std::vector<std::int64_t> tiles;  ///< numbers of them, by place
  std::vector<std::uint8_t> taken;  ///< of those, which have been taken out again
  std::optional<std::string> failure;
  bool interrupted = false;  ///< which is no failure of its tiles
  std::atomic<State> state{State::filling};
};

/// Fills batches with tiles, one after the other. Thread-safe.
class BatchFiller {
 public:
  /// A slide's tiles in a batch.
  struct Member {
    std::weak_ptr<SlideImages> images;
    std::size_t network = 0;  ///< among `SlideImages::networks`
    std::shared_ptr<BatchPart> part;
  };
  /// A batch, full or not.
  struct Filling {
    std::shared_ptr<NetworkBatch> batch;
    std::vector<Member> members;
    std::size_t taken = 0;    ///< places
    std::size_t written = 0;  ///< of these
    bool closed = false;      ///< gets no more
  };
  /// Places for tiles, side by side. Who has them writes the tiles, and calls `written` then, whatever happens.
  struct Places {
    std::shared_ptr<Filling> filling;
    std::shared_ptr<BatchPart> part;
    std::uint8_t* pixels = nullptr;  ///< of the first
    std::size_t count = 0;           ///< 0: there is no batch
  };
  /// Gives an empty batch; null where there is none.
  using Take = std::function<std::shared_ptr<NetworkBatch>()>;
  /// Takes a batch that gets no more tiles, all of which are written.
  using Send = std::function<void(const std::shared_ptr<Filling>&)>;

  BatchFiller(const NetworkTiles& tiles, Send send)
      : most_(static_cast<std::size_t>(tiles.batch)),
        tile_bytes_(static_cast<std::size_t>(tiles.side) * static_cast<std::size_t>(tiles.side) * 3),
        send_(std::move(send)) {}

  /// Places for as many of a slide's tiles as fit, from the first of `tiles` on. \param before  the part that the slide
  /// got last: where nothing stands behind it, it gets them. \throws what `take` does.
  Places take(const std::weak_ptr<SlideImages>& images, std::size_t network, std::span<const std::int64_t> tiles,
              const std::shared_ptr<BatchPart>& before, const Take& take);

  void written(const Places& places);

  /// What there is goes as it is, where nothing was added for so long.
  void flush(runtime::Clock::duration unchanged = runtime::Clock::duration::zero());

 private:
  const std::size_t most_;
  const std::size_t tile_bytes_;
  const Send send_;
  std::mutex mutex_;
  std::shared_ptr<Filling> filling_;        ///< guarded by mutex_, as what is in it
  runtime::Clock::time_point last_change_;  ///< guarded by mutex_
};

}  // namespace slidestream
