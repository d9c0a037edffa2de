#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <slidestream/slide.hpp>
#include <utility>
#include <vector>

#include "slide/tile_reader.hpp"
#include "tiling/batch_memory.hpp"
#include "tiling/tile_stream.hpp"
#include "tiling/tile_walk.hpp"
#include "tiling/white_tiles.hpp"
#include "tiling/window_order.hpp"

/// \file
/// Pixels of a stream's windows, in host memory.

namespace slidestream {

/// Plans the windows of a segment, and makes their pixels of decoded tiles. It owns the memory of batches, and has no
/// threads and no lock: a `TileStream` says which tile is next, and calls `make` from each of its threads.
class WindowMaker {
 public:
  /// A batch that is being made.
  struct Batch {
    explicit Batch(std::int64_t windows, std::shared_ptr<BatchMemory::Lease> memory)
        : pixels(std::move(memory)),
          tiles_left(static_cast<std::size_t>(windows)),
          coords(static_cast<std::size_t>(2 * windows)),
          slides(static_cast<std::size_t>(windows)),
          sources(static_cast<std::size_t>(windows)) {}

    std::shared_ptr<BatchMemory::Lease> pixels;
    std::vector<std::atomic<std::int32_t>> tiles_left;  ///< of each window
    std::vector<std::int64_t> coords;                   ///< of each window that was begun, by its place
    std::vector<std::int32_t> slides;                   ///< the same
    std::int64_t count = 0;                             ///< windows that were begun
    /// Pixels of the level that windows of another resolution are made from, by their places.
    std::vector<std::shared_ptr<BatchMemory::Lease>> sources;
    std::atomic<std::int64_t> windows_made{0};

    std::uint8_t* window(std::size_t place, std::size_t bytes) const noexcept { return pixels->data() + place * bytes; }
  };

  /// Windows that are planned together, and what making them takes.
  struct Windows {
    WindowSegment segment;
    WindowPlan source;                    ///< the same windows, in pixels of the level
    Size source_size;                     ///< of a window there
    std::shared_ptr<BatchMemory> memory;  ///< for these; null where windows have the level's own pixels
    std::size_t rows_at_a_time = 1;       ///< rows of windows for which a tile is decoded once
    std::int64_t batches_wanted = 0;      ///< at most, to hold the windows that a row of tiles touches

    const Slide& slide() const { return *segment.slide; }
    const WindowPlan& plan() const { return segment.plan; }
    const Level& level() const { return segment.level(); }
  };

  /// A window that gets a part of a tile.
  struct Target {
    Batch* batch = nullptr;
    std::size_t place = 0;  ///< of the window in its batch
  };

  /// A tile to decode, and where it goes.
  struct Job {
    std::shared_ptr<const Windows> windows;
    TileWork work;
    std::vector<Target> targets;  ///< one for each part
  };

  /// \param options  outlive this object, and were checked by `check_options`
  explicit WindowMaker(const TileStreamOptions& options);

  std::size_t window_bytes() const noexcept;
  /// Windows without a grid that are made together: tiles that several of them touch are decoded once.
  std::int64_t chunk_windows() const;
  const std::shared_ptr<BatchMemory>& memory() const noexcept { return memory_; }

  /// Decides how a segment's windows are made within `memory_mib`. Thread-safe.
  std::shared_ptr<Windows> plan(WindowSegment segment) const;

  /// Decodes a tile into all its windows, and completes those of which it is the last tile. Thread-safe for different
  /// tiles. \param scratch  memory that calls of a thread use again \param white  counts the tile where it became
  /// white, before its windows are complete \throws SlideError
  void make(const Job& job, TileReader& reader, std::vector<std::uint8_t>& scratch, WhiteTiles& white) const;

 private:
  std::int64_t allowed_batches(std::size_t batch_bytes) const;
  std::uint8_t* place_of(const Windows& windows, const Target& target) const noexcept;
  void finish_window(const Windows& windows, std::size_t window, const Target& target) const;

  const TileStreamOptions& options_;
  const std::shared_ptr<BatchMemory> memory_;
};

}  // namespace slidestream
