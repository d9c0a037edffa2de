#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/image.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

/// \file
/// Which windows of a slide are wanted, and on which level.

namespace slidestream {

/// What becomes of windows that reach beyond the level's right or lower edge.
enum class WindowEdge {
  drop,  ///< they are left out
  pad,   ///< what lies beyond gets a value
};

/// Pixels that windows are cut from: a level's own, or larger ones, each the mean of an area of it (`AreaResampler`).
struct Resolution {
  std::size_t level = 0;
  std::int64_t factor = 65536;  ///< pixels of the level along one of these, times 65,536

  bool is_level() const noexcept { return factor == 65536; }
  double reduction() const noexcept { return static_cast<double>(factor) / 65536.0; }
  /// Of the whole image.
  Size size_of(const Level& of_level) const;
};

/// Where a window begins: its top left corner.
struct WindowCorner {
  std::int64_t x = 0;
  std::int64_t y = 0;

  bool operator==(const WindowCorner&) const = default;
};

/// Windows begin at pixels (i step.width, j step.height) of a resolution, in rows from top to bottom.
struct WindowRequest {
  Size size = {256, 256};     ///< pixels
  Size step = {256, 256};     ///< from a window to the next
  int level = 0;              ///< of the slide
  std::optional<double> mpp;  ///< micrometres a pixel, in place of `level`: see `choose_resolution`
  WindowEdge edge = WindowEdge::drop;
  bool tissue = false;        ///< only windows that are tissue, as the operator `tissue` finds it
  double tissue_share = 0.5;  ///< a window is tissue where at least this share of it is
  int shard = 0;              ///< of each slide's windows piece `shard` of `shards` of (nearly) equal length
  int shards = 1;
  BadTilePolicy on_bad_tile = BadTilePolicy::fail;  ///< of the small level that tissue is found on
};

/// Windows side by side.
struct WindowRow {
  std::int64_t y = 0;     ///< first pixel row, of the resolution
  std::size_t first = 0;  ///< of them, in the plan's list
  std::size_t count = 0;  ///< at least 1
};

/// The windows of a slide, row by row.
struct WindowPlan {
  Resolution resolution;
  std::vector<WindowRow> rows;
  std::vector<std::int64_t> columns;  ///< first pixel column of each window, of the resolution
  std::vector<std::string> doubts;    ///< about the slide's tissue, a line each, without its path
};

/// A level's own pixels; or those of `mpp` micrometres, made from the coarsest level that is finer: the level's own
/// where they are as large within 2 %. \throws SlideError where the slide hasn't the level, doesn't say its pixel size,
/// or is coarser; so it does where its pixels are 256 times as fine.
/// \param remedy  how the pixel size is given, for messages
Resolution choose_resolution(const SlideInfo& info, std::int64_t level, const std::optional<double>& mpp,
                             const std::string& remedy);
Resolution choose_resolution(const SlideInfo& info, const WindowRequest& request);

/// The same windows where their pixels come from, in pixels of the level. With `size_on_level` they hold all that
/// theirs are made of, and may reach beyond the level.
WindowPlan on_level(const WindowPlan& plan);
Size size_on_level(const Resolution& resolution, const Size& window);

/// The pixel of level 0 that pixel `at` begins at, along an axis. \param downsample  pixels of level 0 along one of the
/// level. \param pixel  how many of the level's `at` counts.
inline std::int64_t to_finest(std::int64_t at, double downsample, double pixel = 1.0) {
  return static_cast<std::int64_t>(static_cast<double>(at) * (downsample * pixel) + 0.5);
}

/// The pixel of a resolution that is nearest to pixel `at` of level 0, along an axis.
/// \param downsample  pixels of level 0 along one of the level
std::int64_t on_grid(std::int64_t at, double downsample, const Resolution& resolution);

/// Plans a slide's windows. Finding tissue reads the slide's small level. \throws SlideError
WindowPlan plan_windows(const Slide& slide, const WindowRequest& request);

}  // namespace slidestream
