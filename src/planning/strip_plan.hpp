#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <slidestream/operator.hpp>
#include <slidestream/slide.hpp>

/// \file
/// How a level is cut into strips: pure geometry. Coordinates are pixels of the level.

namespace slidestream {

/// What tiles are decoded to: strips have a plane of each kind that an operator of the run reads.
enum Plane : std::size_t { luminance_plane, rgb_plane, plane_count };

/// Something for each plane, wanted or not.
template <class T>
using ByPlane = std::array<T, plane_count>;

constexpr ByPlane<PixelFormat> plane_formats = {luminance_format, rgb_format};

/// What the planner knows of an operator.
struct OperatorNeeds {
  Footprint footprint;
  Plane plane = luminance_plane;  ///< that it reads
  std::int64_t image_bytes = 0;   ///< of a pixel of the image that it makes; 0: it makes none
  bool has_network = false;       ///< the image goes to a network on the host
};

/// Outputs [first, first + count) of an operator along one axis.
struct OutputRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  std::int64_t end() const noexcept { return first + count; }
};

/// Columns of the level that are worked through from top to bottom together. A level whose strips fit the slots is one
/// panel; a wider one is cut into several, which overlap where their windows do.
struct PanelPlan {
  std::int64_t x0 = 0;  ///< first pixel column that is decoded
  std::int64_t x1 = 0;  ///< one past the last
  std::int64_t first_tile_column = 0;
  std::int64_t tile_columns = 0;
  std::int64_t first_owned_tile_column = 0;  ///< tiles left of it count as the panel's before
  ByPlane<std::ptrdiff_t> pitch{};           ///< bytes from a row to the next in a slot; 0: nobody wants the plane
};

/// Whole tile rows of one panel, and the rows that the next strip needs again.
struct StripPlan {
  std::size_t panel = 0;
  std::int64_t first_tile_row = 0;
  std::int64_t tile_rows = 0;
  std::int64_t y0 = 0;                    ///< first row that is decoded
  std::int64_t y1 = 0;                    ///< one past the last
  ByPlane<std::int64_t> carry_in_y0{};    ///< rows [carry_in_y0, y0) of a plane come from the strip before
  ByPlane<std::int64_t> carry_out_y0{};   ///< rows [carry_out_y0, y1) go to the strip after
  std::int64_t first_owned_tile_row = 0;  ///< tiles above it count as the fragment's before
};

/// Consecutive strips that follow each other through one lane of the graph: rows are carried from each to the next,
/// where they belong to the same panel.
struct ChainPlan {
  std::size_t first_strip = 0;
  std::size_t strips = 0;
};

/// All strips of a level, fragment by fragment, in them panel by panel, in them top to bottom. Each output of each
/// operator belongs to one panel and to one strip of it.
struct LevelPlan {
  std::vector<Size> outputs;  ///< of the level, by operator
  std::vector<PanelPlan> panels;
  std::vector<StripPlan> strips;
  std::vector<ChainPlan> chains;  ///< one a fragment

  /// Columns of outputs that are a panel's.
  const OutputRange& columns(std::size_t panel, std::size_t op) const {
    return panel_columns[panel * outputs.size() + op];
  }
  /// Rows of outputs that a strip completes, in its panel's columns.
  const OutputRange& rows(std::size_t strip, std::size_t op) const { return strip_rows[strip * outputs.size() + op]; }

  std::vector<OutputRange> panel_columns;  ///< by panel, in it by operator
  std::vector<OutputRange> strip_rows;     ///< by strip, in it by operator
};

/// Outputs of an operator.
struct OutputCount {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
};

/// What a batch of some whole tile rows of a panel needs at most.
struct BatchNeeds {
  ByPlane<std::ptrdiff_t> pitch{};       ///< bytes of a row; 0: nobody wants the plane
  std::int64_t width = 0;                ///< pixels of a row
  ByPlane<std::int64_t> carried_rows{};  ///< from the strip before
  std::int64_t rows = 0;                 ///< its own
  std::int64_t compressed_bytes = 0;
  std::int64_t tiles = 0;
  std::int64_t tile_pixels = 0;      ///< of a tile
  bool decoded_on_device = false;    ///< compressed tiles cross the bus, not rows
  std::vector<OutputCount> outputs;  ///< that it completes, by operator
  std::size_t windows = 0;           ///< place of the operator that makes no image, where there is one
  std::int64_t image_bytes = 0;      ///< of the rows of images that it completes
  bool levels_on_device = false;     ///< these stay there, and levels are made of them

  std::int64_t patch_bytes() const noexcept;    ///< of a tile in all planes
  std::int64_t carried_bytes() const noexcept;  ///< of all planes
  std::int64_t plane_bytes() const noexcept;    ///< of all planes, carried rows and its own
};

/// Bytes of a pixel in all planes that have a pitch, which are those that somebody wants.
std::int64_t pixel_bytes_of(const ByPlane<std::ptrdiff_t>& pitch) noexcept;

/// Bytes from a row of an image to the next, in an output slot.
std::int64_t image_pitch(std::int64_t width, std::int64_t pixel_bytes) noexcept;

/// What batches must fit.
struct SlotLimits {
  std::size_t slot_bytes = 0;    ///< of host memory
  std::size_t carry_bytes = 0;   ///< carried rows between two strips, in the memory where they are carried
  std::size_t output_slots = 0;  ///< bands of images under way
  std::size_t output_bytes = 0;  ///< of such a band
  /// Whether a batch fits its slot. Monotone: less of anything fits as well.
  std::function<bool(const BatchNeeds&)> fits;
  /// Whether devices make the levels of a slide's images, of which a strip of one row of tiles completes `most_rows`.
  /// Empty: they don't.
  std::function<bool(const Level& level, std::int64_t most_rows)> makes_levels;
};

/// For a run on the CPU: `pipeline.memory_mib` as `queue_depth` slots (carried rows, own rows and compressed tiles of a
/// batch), `queue_depth` + 1 carry buffers of a quarter's size, and where operators make images as many output slots as
/// half of `queue_depth`, at least 2, which hold what a slot full of rows gives.
SlotLimits slot_limits(const PipelineConfig& config, std::span<const OperatorNeeds> operators);
/// The same without images, from the size of a carry buffer.
SlotLimits slot_limits(std::size_t carry_bytes);

/// Compressed bytes are placed behind the rows, aligned; this covers the gap.
constexpr std::int64_t slot_slack = 4096;

/// Bytes that tiles [first, first + count) of a tile row need in a slot's compressed part.
using CompressedBytes = std::int64_t (*)(const void* context, std::int64_t tile_row, std::int64_t first_column,
                                         std::int64_t columns);

/// Pixels of a batch that is decoded on a device when `batch_strips` is 0: 16,384 tiles of 256 x 256, with which a
/// launch has enough to do.
constexpr std::int64_t device_batch_pixels = std::int64_t{1} << 30;
/// And where nobody waits for the one slide: enough for a slide of 65,000 x 45,000, whose launches then have no ends
/// but its own.
constexpr std::int64_t device_slide_pixels = std::int64_t{3} << 30;

/// A row of tiles doesn't fit a slot.
class RoomError : public Error {
 public:
  RoomError(const std::string& what, std::int64_t memory_mib) : Error(what), memory_mib_(memory_mib) {}
  /// `pipeline.memory_mib` with which it would fit; 0: that isn't known.
  std::int64_t memory_mib() const noexcept { return memory_mib_; }

 private:
  std::int64_t memory_mib_;
};

/// What decides how a level is cut, besides the configuration.
struct PlanOptions {
  std::int64_t fragments = 1;
  bool decoded_on_device = false;
  std::int64_t batch_pixels = device_batch_pixels;  ///< at most, of a batch that is decoded on a device
  bool levels_on_device = false;
};

/// Whether the levels of a slide's images are made on the devices. All its batches go one way.
bool levels_on_device(const Level& level, std::span<const OperatorNeeds> operators, const SlotLimits& limits);

/// Where levels of images are made on a device and little else is under way: tiles of the first batches are written
/// while the others are computed. And of fragments: a device decodes the first batch while the next one is read.
constexpr std::int64_t device_first_pixels = std::int64_t{1} << 28;

/// For the `index`th of `slides` on so many lanes. Long runs compute whole slides per launch: they repay the pinning of
/// more of each slot. Slides at the start have smaller batches, as the device waits for its first ones. So do slides at
/// the end, as the caller waits for the last.
constexpr std::int64_t batch_pixels_of(std::size_t index, std::size_t slides, std::size_t lanes,
                                       bool levels_on_device = false) noexcept {
  constexpr std::size_t first = 4;
  constexpr std::size_t many = 16;
  const bool soon = index < first * lanes || slides - index <= lanes;
  if (soon && levels_on_device) return device_first_pixels;
  return soon || slides <= many * lanes ? device_batch_pixels : device_slide_pixels;
}
/// The most that this gives any of them.
constexpr std::int64_t most_batch_pixels(std::size_t slides, std::size_t lanes) noexcept {
  std::int64_t most = device_batch_pixels;
  // The one before the last ones has most behind it.
  if (slides > lanes) most = std::max(most, batch_pixels_of(slides - lanes - 1, slides, lanes));
  return most;
}

/// Whether the level is at least as large as one window.
bool has_window(const Level& level, const Footprint& op) noexcept;

/// \throws Error where the level is smaller than a window.
void require_window(const Level& level, const Footprint& op);

/// The operators for `plan_level`, where some have a window in the level: those that haven't, which make nothing of the
/// slide, want single pixels.
std::vector<OperatorNeeds> fitting_needs(const Level& level, std::span<const OperatorNeeds> operators);

/// Cuts a level for operators that share its pixels: into fragments of about equal height (fewer when there are fewer
/// rows of outputs), each a chain of strips that needs nothing of the others: tiles at their edges are decoded for
/// both. Strips have about `strip_height` x `batch_strips` rows, in whole tile rows, and fewer where the slot is too
/// small for them. On a device that decodes, with `batch_strips` = 0, they have about `PlanOptions::batch_pixels`
/// pixels. Where an operator makes an image, there is one chain of full width. With `residency` = whole there is one
/// strip. There is at least one operator. \throws Error when the level is smaller than a window, or must be one strip
/// and doesn't fit a slot; RoomError when a single row of tiles doesn't fit a slot, however narrow. The message names
/// the keys to turn.
LevelPlan plan_level(const Level& level, std::span<const OperatorNeeds> operators, const PipelineConfig& pipeline,
                     const SlotLimits& limits, CompressedBytes compressed_bytes, const void* context,
                     const PlanOptions& options = {});

}  // namespace slidestream
