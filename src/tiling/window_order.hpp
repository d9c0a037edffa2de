#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <slidestream/slide.hpp>
#include <utility>
#include <vector>

#include "tiling/tile_stream.hpp"
#include "tiling/window_plan.hpp"

/// \file
/// The order in which a stream gives windows, and the pieces in which it makes them.

namespace slidestream {

/// Slides whose windows are mixed at a time by `TileStreamOptions::shuffle`. All of them are open meanwhile.
inline constexpr std::size_t slides_shuffled_together = 16;

/// Windows of one slide that are planned together. A stream numbers its windows from 0 in the order that it gives them.
struct WindowSegment {
  std::int32_t place = 0;  ///< of the slide among the stream's slides
  std::shared_ptr<const Slide> slide;
  WindowPlan plan;  ///< rows from top to bottom, in each the columns from left to right
  /// Of each window of the plan: its number in the stream. Empty: the plan's order, from `first` on.
  std::vector<std::int64_t> numbers;
  std::vector<WindowCorner> corners;  ///< of each window of the plan, in pixels of level 0
  /// All numbers lie in [first, last). Segments with the same range hold the rest of it.
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool is_scattered = false;  ///< the windows are not on a grid

  const Level& level() const { return slide->info().levels[plan.resolution.level]; }
  std::int64_t number(std::size_t window) const {
    return numbers.empty() ? first + static_cast<std::int64_t>(window) : numbers[window];
  }
};

/// Plans the windows of a stream, segment by segment. A walk over the grid is one segment per slide. Windows of a list,
/// and shuffled ones, are cut into chunks of so many windows that a chunk's batches fit in memory together; a chunk is
/// a segment per slide. The result depends on the options and the chunk's size alone. Used by one thread at a time.
class WindowOrder {
 public:
  /// \param options  outlive this. \param chunk  windows, at least 1
  WindowOrder(const TileStreamOptions& options, std::int64_t chunk);

  /// The next segment; none after the last. \throws SlideError of a slide that can't be planned; nothing is to be asked
  /// behind it
  std::optional<WindowSegment> next();

  /// Windows of the whole stream. Opens every slide. Not to be mixed with `next`. \throws SlideError
  std::int64_t count();

 private:
  /// An open slide of the group that is being given.
  struct Planned {
    std::int32_t place = 0;
    std::shared_ptr<const Slide> slide;
    WindowPlan plan;                  ///< of the grid; of a list only the resolution
    std::vector<std::size_t> listed;  ///< of a list: the corners that are wanted, by their places in it
  };
  /// A window of the group.
  struct Window {
    std::uint32_t slide = 0;   ///< index into `group_`
    std::uint32_t window = 0;  ///< of the plan, or index into `listed`
  };

  bool is_grid() const { return options_.corners.empty() && !options_.shuffle; }
  void begin_group();
  Planned plan(std::int32_t place) const;
  void shuffle_and_cut();
  void make_chunk();
  WindowSegment segment(std::size_t slide, const std::vector<std::size_t>& windows) const;

  const TileStreamOptions& options_;
  const std::int64_t chunk_;
  std::vector<std::int32_t> slides_;  ///< in the order in which they are given
  std::size_t next_slide_ = 0;        ///< in that list
  std::vector<Planned> group_;
  std::vector<Window> order_;      ///< of the group's windows
  std::size_t next_in_order_ = 0;  ///< the first window of the next chunk
  std::int64_t next_number_ = 0;   ///< in the stream
  std::deque<WindowSegment> made_;
};

/// Draws a permutation: Fisher and Yates' shuffle by the 64-bit generator SplitMix64 (Steele, Lea, Flood 2014). The
/// same seed gives the same order on every machine.
class Shuffler {
 public:
  explicit Shuffler(std::uint64_t seed) : state_(seed) {}

  template <class Item>
  void operator()(std::vector<Item>& items) {
    for (std::size_t left = items.size(); left > 1; --left) std::swap(items[left - 1], items[below(left)]);
  }

 private:
  std::uint64_t next() noexcept;
  /// Evenly distributed in [0, bound), by rejection.
  std::size_t below(std::size_t bound) noexcept;

  std::uint64_t state_;
};

}  // namespace slidestream
