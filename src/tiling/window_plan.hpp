#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/image.hpp>
#include <slidestream/slide.hpp>
#include <vector>

/// \file
/// Which windows of a slide are wanted, and on which level.

namespace slidestream {

/// What becomes of windows that reach beyond the level's right or lower edge.
enum class WindowEdge {
  drop,  ///< they are left out
  pad,   ///< what lies beyond gets a value
};

/// Windows begin at pixels (i step.width, j step.height) of a level, in rows from top to bottom.
struct WindowRequest {
  Size size = {256, 256};     ///< pixels of the level
  Size step = {256, 256};     ///< from a window to the next
  int level = 0;              ///< of the slide
  std::optional<double> mpp;  ///< the level that has so many micrometres a pixel, within 2 %, in place of `level`
  WindowEdge edge = WindowEdge::drop;
  bool tissue = false;        ///< only windows that are tissue, as the operator `tissue` finds it
  double tissue_share = 0.5;  ///< a window is tissue where at least this share of it is
  int shard = 0;              ///< of each slide's windows piece `shard` of `shards` of (nearly) equal length
  int shards = 1;
  BadTilePolicy on_bad_tile = BadTilePolicy::fail;  ///< of the small level that tissue is found on
};

/// Windows side by side.
struct WindowRow {
  std::int64_t y = 0;     ///< first pixel row
  std::size_t first = 0;  ///< of them, in the plan's list
  std::size_t count = 0;  ///< at least 1
};

/// The windows of a slide, row by row.
struct WindowPlan {
  std::size_t level = 0;
  std::vector<WindowRow> rows;
  std::vector<std::int64_t> columns;  ///< first pixel column of each window
};

/// The pixel of level 0 that pixel `at` of a level begins at, along an axis of so many pixels.
inline std::int64_t to_finest(std::int64_t at, std::int64_t length, std::int64_t finest_length) {
  const double scale = static_cast<double>(finest_length) / static_cast<double>(length);
  return static_cast<std::int64_t>(static_cast<double>(at) * scale + 0.5);
}

/// The level that a request means. \throws SlideError naming the levels that there are.
std::size_t choose_level(const SlideInfo& info, const WindowRequest& request);

/// Plans a slide's windows. Finding tissue reads the slide's small level. \throws SlideError
WindowPlan plan_windows(const Slide& slide, const WindowRequest& request);

}  // namespace slidestream
