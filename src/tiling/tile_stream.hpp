#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "tiling/batch_memory.hpp"
#include "tiling/window_pixels.hpp"
#include "tiling/window_plan.hpp"

/// \file
/// Windows of slides in batches, decoded ahead by threads of their own.

namespace slidestream {

/// What slides are warned of as they are opened, planned and decoded, each line once. Thread-safe.
class OpeningWarnings {
 public:
  /// Lines about a slide, without its path.
  void add(const std::filesystem::path& slide, const std::vector<std::string>& warnings);
  /// Those that weren't taken before, "PATH: LINE".
  std::vector<std::string> take();

 private:
  std::mutex mutex_;
  std::set<std::string> told_;        ///< guarded by mutex_
  std::vector<std::string> waiting_;  ///< guarded by mutex_
};

struct TileStreamOptions {
  std::vector<std::filesystem::path> slides;
  WindowRequest windows;
  /// In place of the grid: for each slide the corners of its windows in pixels of level 0, in the order in which they
  /// are given. A corner is moved to the nearest pixel of the resolution; `windows.edge` says what becomes of windows
  /// that reach beyond the level. Empty: the grid.
  std::vector<std::vector<WindowCorner>> corners;
  /// Seed of a random order: slides in a random order, and the windows of each 16 of them mixed. Each shard has every
  /// n-th of them.
  std::optional<std::uint64_t> shuffle;
  int batch = 64;  ///< windows of a batch
  WindowLayout layout = WindowLayout::interleaved;
  std::uint8_t fill = 255;  ///< value of what lies beyond a level's edge
  int threads = 0;          ///< that decode; 0: as many as processors that the process may use
  int prefetch = 2;         ///< batches that are made ahead of the one that is asked for
  /// Host memory for batches that are being made, in MiB. Where windows overlap or cross rows of tiles so much that
  /// they don't fit, tiles are decoded more than once: at most once for each row of windows.
  int memory_mib = 1024;
  OpenOptions open;
  std::shared_ptr<OpeningWarnings> warnings = {};  ///< gets those of each slide; null: nobody hears them
};

/// \throws ConfigError for options that mean nothing, in one line that names them
void check_options(const TileStreamOptions& options);

/// Some windows, in the order of the slides and of their rows.
struct TileBatch {
  std::shared_ptr<BatchMemory::Lease> pixels;  ///< `batch` windows; behind `count` of them zeros
  std::vector<std::int64_t> coords;            ///< x, y of each window's top left corner in pixels of level 0
  std::vector<std::int32_t> slides;            ///< of each window, its place in `TileStreamOptions::slides`
  std::int64_t count = 0;                      ///< windows; as many as a batch holds, but of the last one
};

/// What a stream did so far.
struct TileStreamFigures {
  std::int64_t windows = 0;        ///< that were begun
  std::int64_t tiles_decoded = 0;  ///< of slides
};

/// Walks slides in the order that they were given in. Each tile that a window touches is read and decoded once,
/// straight into the windows, as long as the memory allows it; several tiles at a time. What comes out depends on the
/// options alone. Members may be called by any thread.
class TileStream {
 public:
  /// Starts to work. \throws ConfigError as `check_options` does
  explicit TileStream(TileStreamOptions options);
  /// Ends the threads: each finishes its tile.
  ~TileStream();
  TileStream(const TileStream&) = delete;
  TileStream& operator=(const TileStream&) = delete;

  enum class State { batch, end, waiting };

  /// The next batch, when there is one within `patience`; `end` after the last one, and after `close`. Of tiles that
  /// became white the options' warnings have a line when all windows of a slide were given, and of shuffled ones at the
  /// end.
  /// \throws SlideError of a slide that can't be opened, or of a tile, at the latest when its windows are due; Error in
  ///   a process that was forked from the one that made the stream
  State next(TileBatch& batch, std::chrono::milliseconds patience);

  /// Ends the work; batches that were handed out stay what they are.
  void close() noexcept;

  TileStreamFigures figures() const;

  /// Windows of all slides together, which are opened for it, and left again. \throws SlideError, ConfigError
  static std::int64_t count_windows(const TileStreamOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slidestream
