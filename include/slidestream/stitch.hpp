#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/image.hpp>
#include <slidestream/network.hpp>

/// @file
/// Overlapping tiles: their places in an image, how they are cut, and how a network's values are stitched into an
/// image. Weights and sums are integers, so that neither the order of tiles nor the device changes a result.

#if defined(__CUDACC__)
#define SLIDESTREAM_STITCH __host__ __device__
#else
#define SLIDESTREAM_STITCH
#endif

namespace slidestream {

struct Level;

/// Tiles along one axis of an image. Tile i begins at i (tile - overlap); only the last tile may be moved back.
/// Neighbours i - 1 and i are blended over `overlap` samples from i (tile - overlap) on, even if tile i was moved.
/// Before that range tile i - 1 counts alone. Behind it tile i counts alone, up to its blend with tile i + 1.
/// With `nearest` nothing is blended: the tile whose centre is nearest counts alone, the earlier of equals.
struct StitchAxis {
  std::int64_t size = 1;     ///< samples of the image
  std::int64_t tile = 1;     ///< samples of a tile; more than `size` where the image is smaller
  std::int64_t overlap = 0;  ///< samples that neighbours share, 0 to tile / 2
  std::int64_t count = 1;    ///< number of tiles
  std::int64_t last = 0;     ///< first sample of the last tile
  bool nearest = false;      ///< tiles aren't blended

  /// @return Samples from the begin of one tile to the next.
  SLIDESTREAM_STITCH constexpr std::int64_t step() const noexcept { return tile - overlap; }
  /// @param i  Number of a tile, 0 to count - 1.
  /// @return First sample of the tile.
  SLIDESTREAM_STITCH constexpr std::int64_t begin(std::int64_t i) const noexcept {
    return i + 1 == count ? last : i * step();
  }
  /// Finds the last tile that counts at a sample.
  /// @param x  The sample, 0 to size - 1.
  /// @return Number of the tile.
  SLIDESTREAM_STITCH constexpr std::int64_t tile_at(std::int64_t x) const noexcept {
    const std::int64_t i = x / step();
    const std::int64_t inside = i < count ? i : count - 1;
    if (!nearest) return inside;
    // The last tile may lie over more than the half of the one before it.
    if (inside + 1 < count && x >= nearest_from(inside + 1)) return inside + 1;
    return inside > 0 && x < nearest_from(inside) ? inside - 1 : inside;
  }
  /// @param i  Number of a tile, 1 to count - 1.
  /// @return First sample whose nearest centre is the tile's.
  SLIDESTREAM_STITCH constexpr std::int64_t nearest_from(std::int64_t i) const noexcept {
    return (begin(i - 1) + begin(i) + tile + 1) / 2;
  }
  /// Finds the place of a sample in the blend of a tile with the tile before it.
  /// @param x  The sample, 0 to size - 1.
  /// @param i  `tile_at(x)`.
  /// @return 0 to overlap - 1; -1 if tile i counts alone.
  SLIDESTREAM_STITCH constexpr std::int64_t blend_at(std::int64_t x, std::int64_t i) const noexcept {
    const std::int64_t t = x - i * step();
    return !nearest && i > 0 && t < overlap ? t : -1;
  }
  /// @param i  Number of a tile, 0 to count - 1.
  /// @return Number of samples, from the first on, that need no tile behind tile `i`.
  SLIDESTREAM_STITCH constexpr std::int64_t whole_after(std::int64_t i) const noexcept {
    if (i + 1 == count) return size;
    return nearest ? nearest_from(i + 1) : (i + 1) * step();
  }
  /// @param i  Number of a tile, 0 to count - 1.
  /// @return Number of samples up to and including the last one at which tile `i` counts.
  SLIDESTREAM_STITCH constexpr std::int64_t end_of(std::int64_t i) const noexcept {
    if (i + 1 == count) return size;
    return nearest ? nearest_from(i + 1) : (i + 1) * step() + overlap;
  }
};

/// Places tiles along an axis. With `shift` there are max(1, ceil((size - tile) / step) + 1) tiles, and the last one
/// begins at max(0, size - tile). Otherwise there are max(1, ceil((size - overlap) / step)) tiles, all in step.
/// Thread-safe.
/// @param size  Samples of the image, from 1.
/// @param tile  Samples of a tile, from 1.
/// @param overlap  Samples that neighbours share, 0 to tile / 2.
/// @param edge  `shift` or `mirror`.
/// @param nearest  Tiles aren't blended.
/// @return The tiles.
/// @throws std::invalid_argument  A number is outside of its range.
StitchAxis stitch_axis(std::int64_t size, std::int64_t tile, std::int64_t overlap, StitchEdge edge,
                       bool nearest = false);

/// Weight of tile i at a place of its blend with tile i - 1, for `tent`. Tile i - 1 weighs 256 minus that.
/// @param t  Place in the blend, 0 to overlap - 1.
/// @param overlap  Samples that the tiles share, from 1.
/// @return 0 to 256.
SLIDESTREAM_STITCH constexpr int tent_weight(std::int64_t t, std::int64_t overlap) noexcept {
  return static_cast<int>((512 * t + 256 + overlap) / (2 * overlap));
}

/// Weights of tile i at all places of its blend with tile i - 1. `tent` gives `tent_weight`. `cosine` gives rint(128 (1
/// - cos(pi (t + 1/2) / overlap))) in the first half, 128 in the middle, and 256 minus the mirrored weight in the
/// second half. `none` gives 0 before floor(overlap / 2) and 256 from there on. Thread-safe.
/// @param weights  How neighbours share their pixels.
/// @param overlap  Samples that the tiles share, from 0.
/// @return `overlap` weights, 0 to 256.
std::vector<std::uint16_t> stitch_ramp(StitchWeights weights, std::int64_t overlap);

/// Sum of the weights of all tiles at a sample: 256 x 256.
inline constexpr std::uint32_t stitch_whole = 65536;

/// Blends one sample.
/// @param sum  Sum of weight x value over tiles that together weigh `stitch_whole`.
/// @return The sample, rounded half up.
SLIDESTREAM_STITCH constexpr std::uint32_t stitched(std::uint32_t sum) noexcept {
  return (sum + stitch_whole / 2) >> 16;
}
/// Blends one sample where tiles are absent.
/// @param sum  Sum of weight x value over the present tiles.
/// @param weight  Weight of the present tiles, not 0.
/// @return The sample, rounded half up.
SLIDESTREAM_STITCH constexpr std::uint32_t stitched(std::uint64_t sum, std::uint64_t weight) noexcept {
  return static_cast<std::uint32_t>((2 * sum + weight) / (2 * weight));
}

/// Place of a tile in the grid of tiles, from 0.
struct StitchTile {
  std::int64_t column = 0;
  std::int64_t row = 0;
};

/// The tiles of an image, and the image that is stitched from them.
struct StitchPlan {
  Size input;              ///< the image that tiles are cut from, in pixels
  Size image;              ///< the stitched image, in samples: ceil(input / scale)
  std::int64_t side = 1;   ///< side of a tile, in pixels
  std::int64_t scale = 1;  ///< pixels per sample along an axis
  StitchAxis x;            ///< in samples
  StitchAxis y;            ///< in samples

  /// @return Number of all tiles.
  std::int64_t tiles() const noexcept { return x.count * y.count; }
  /// @param number  Number of a tile, counted row by row from 0.
  /// @return Its place.
  StitchTile tile(std::int64_t number) const noexcept { return {number % x.count, number / x.count}; }
  /// @param tile  Place of a tile.
  /// @return The rectangle that it is cut from, in pixels of the input. It may reach beyond the input.
  Rect input_of(StitchTile tile) const noexcept {
    return {x.begin(tile.column) * scale, y.begin(tile.row) * scale, side, side};
  }
  /// @param row  Number of a row of tiles, from 0.
  /// @return Rows [first, second) of the input that the row is cut from, including the rows that are mirrored.
  std::pair<std::int64_t, std::int64_t> input_rows(std::int64_t row) const noexcept;
};

/// Plans the tiles of an image. Thread-safe.
/// @param input  Size of the image that tiles are cut from, in pixels.
/// @param side  Side of a tile, in pixels: a multiple of `scale`.
/// @param overlap  Pixels that neighbours share, 0 to side / 2: a multiple of `scale`.
/// @param scale  Pixels per sample of the stitched image, along an axis.
/// @param edge  `shift` or `mirror`: the place of the last tile.
/// @param nearest  Tiles aren't blended, as for labels.
/// @return The tiles and the size of the stitched image.
/// @throws std::invalid_argument  A number is outside of its range.
StitchPlan plan_stitching(Size input, std::int64_t side, std::int64_t overlap, std::int64_t scale, StitchEdge edge,
                          bool nearest = false);

/// Cuts a tile from RGB in host memory. Pixels outside the image are mirrored with the edge pixel repeated, as NumPy's
/// `symmetric` does. Thread-safe.
/// @param tile  Written: rect.height x rect.width x 3 samples.
/// @param rows  All rows that the tile needs, in the image's full width.
/// @param rect  The rectangle to cut, in pixels of the image.
/// @throws std::invalid_argument  `rows` or `tile` doesn't fit.
void cut_tile(std::span<std::uint8_t> tile, const ConstPixelView<MemorySpace::host>& rows, const Rect& rect);

/// Tracks which two rows of tiles are kept, and which rows of the image can be made. Not thread-safe.
class StitchRows {
 public:
  /// Begins without tiles.
  /// @param plan  The tiles.
  explicit StitchRows(const StitchPlan& plan);

  /// @param row  Number of a row of tiles.
  /// @return Whether its tiles have room.
  bool has_room(std::int64_t row) const noexcept { return row < freed_ + 2; }
  /// Counts a tile as settled: it is present, or it never will be. Call it once per tile.
  /// @param row  Number of the tile's row of tiles.
  void arrived(std::int64_t row);
  /// @return Number of rows of the image, from the top, that can be made.
  std::int64_t ready() const noexcept { return ready_; }
  /// Frees the rows of tiles that are needed for no image row from `rows` on.
  /// @param rows  Row of the image.
  void release(std::int64_t rows);

 private:
  StitchAxis down_;
  std::vector<std::int64_t> missing_;  ///< per row of tiles: tiles that aren't settled
  std::int64_t whole_ = 0;             ///< rows of tiles from the top whose tiles are all settled
  std::int64_t freed_ = 0;             ///< rows of tiles from the top that are needed no more
  std::int64_t ready_ = 0;
};

/// Statistics of a tile's values, taken before they became samples.
struct MappedValues {
  std::int64_t not_finite = -1;  ///< place of the first value that isn't a finite number; -1: none
  /// Values below `low` or above `high`, after the activation; of classes by more than 2^-20 of the range.
  std::int64_t outside = 0;
  std::int64_t ignored = 0;    ///< labels that equal `NetworkOutput::ignore`; 0 for other kinds
  std::int64_t saturated = 0;  ///< pixels of which a sigmoid makes several classes the largest sample; else 0
  float least = 0.0F;          ///< smallest value after the activation; only valid if all values are finite
  float largest = 0.0F;        ///< largest value, likewise

  /// @param output  Tells whether values outside its range may be clamped.
  /// @return Whether the samples can be used: all values are finite, and those outside may be clamped.
  bool sound(const NetworkOutput& output) const noexcept {
    return not_finite < 0 && (outside == 0 || !output.refuses_outside());
  }
};

/// Stitches a network's tiles in host memory. It keeps two rows of tiles, as samples of an image. Tiles may come in any
/// order, each once. The image depends only on which tiles are present.
///
/// Threads: `put` and `gather` may run at the same time for different tiles and rectangles. All other functions need
/// exclusive access.
class StitchBand {
 public:
  /// Allocates `bytes` of host memory.
  /// @param plan  The tiles.
  /// @param output  What the network gives per tile: an image or classes.
  /// @param weights  How neighbours share their pixels.
  /// @throws std::invalid_argument  `output` has vectors, float32 samples, other than 1 to 16 channels, an `ignore`
  ///   that is a class, or an empty range.
  StitchBand(const StitchPlan& plan, const NetworkOutput& output, StitchWeights weights);

  /// @param plan  The tiles.
  /// @param output  What the network gives per tile.
  /// @return Memory for the kept tiles, in bytes.
  static std::uint64_t bytes(const StitchPlan& plan, const NetworkOutput& output) noexcept;
  /// @param output  What the network gives per tile.
  /// @return Format of the image: the network's channels, or one label per pixel, of 8 bits for classes.
  static PixelFormat format(const NetworkOutput& output) noexcept;

  /// As `StitchRows::has_room`.
  bool has_room(std::int64_t row) const noexcept { return rows_.has_room(row); }
  /// Applies the activation to a tile's values and keeps them as samples: clamp(rint((x - low) (max / (high - low))))
  /// in float32, where max is the largest sample. If the values aren't `sound`, call `arrived` with `present` = false.
  /// @param tile  A tile whose row has room.
  /// @param values  Host memory: channels x height x width values of the tile.
  /// @return Statistics of the values.
  /// @throws std::invalid_argument  The row has no room, or the number of values is wrong.
  [[nodiscard]] MappedValues put(StitchTile tile, std::span<const float> values);
  /// Counts a tile as settled.
  /// @param tile  The tile.
  /// @param present  Whether it was put. If not, it is absent from the image.
  void arrived(StitchTile tile, bool present);

  /// As `StitchRows::ready`.
  std::int64_t ready() const noexcept { return rows_.ready(); }
  /// Makes pixels of rows that are `ready` and haven't been released. Pixels without a present tile are white in 8-bit
  /// RGB, `NetworkOutput::ignore` in labels, else 0.
  /// @param out  Written, in `format`.
  /// @throws std::invalid_argument  The view has another format or image, or rows that aren't ready.
  void gather(const PixelView<MemorySpace::host>& out) const;
  /// As `StitchRows::release`. Rows of the image before `rows` can't be made any more.
  void release(std::int64_t rows) { rows_.release(rows); }

 private:
  template <class Sample>
  void gather_rows(const PixelView<MemorySpace::host>& out) const;

  StitchPlan plan_;
  NetworkOutput output_;
  int channels_;
  SampleType sample_;  ///< of the kept tiles
  std::vector<std::uint16_t> ramp_;
  std::size_t tile_bytes_;
  std::unique_ptr<std::byte[]> tiles_;  ///< two rows of tiles; an even and an odd one
  std::vector<std::uint8_t> present_;   ///< by tile number
  StitchRows rows_;
};

/// Stitches a network's tiles in the memory of one CUDA device. Values and pixels are in that memory, too. The pixels
/// are bit for bit those of `StitchBand`. Functions that take a stream, a cudaStream_t, enqueue their work there and
/// return. If the caller uses several streams, it makes them wait for each other.
///
/// Threads: one at a time, with the object's device as the current device. The caller waits for its streams before it
/// destroys the object.
class DeviceStitchBand {
 public:
  /// Allocates `StitchBand::bytes` of the current device's memory, and a little more. Waits for the device.
  /// @param plan  The tiles.
  /// @param output  What the network gives per tile: an image or classes.
  /// @param weights  How neighbours share their pixels.
  /// @throws std::invalid_argument  As in `StitchBand`.
  /// @throws CudaError  The device has too little free memory, a CUDA call failed, or this build has no CUDA.
  DeviceStitchBand(const StitchPlan& plan, const NetworkOutput& output, StitchWeights weights);
  ~DeviceStitchBand();
  DeviceStitchBand(const DeviceStitchBand&) = delete;
  DeviceStitchBand& operator=(const DeviceStitchBand&) = delete;

  /// As `StitchRows::has_room`.
  bool has_room(std::int64_t row) const noexcept { return rows_.has_room(row); }
  /// Keeps a tile's values as samples, as `StitchBand::put` does, and counts the tile as settled. A tile whose values
  /// aren't `MappedValues::sound` is absent from the image.
  /// @param tile  A tile whose row has room.
  /// @param values  Device memory: channels x height x width values of the tile.
  /// @param stream  A cudaStream_t.
  /// @throws std::invalid_argument  The row has no room, or the number of values is wrong.
  /// @throws CudaError  A CUDA call failed.
  void put(StitchTile tile, std::span<const float> values, void* stream);
  /// Counts a tile as settled that never will be put.
  /// @param tile  A tile whose row has room.
  /// @param stream  A cudaStream_t.
  /// @throws std::invalid_argument  The row has no room.
  /// @throws CudaError  A CUDA call failed.
  void skip(StitchTile tile, void* stream);
  /// Finds the first tile, in row order, that was put with values that aren't `MappedValues::sound`. Waits for the
  /// stream.
  /// @param stream  The cudaStream_t on which tiles were put.
  /// @return Nothing if all tiles so far are sound.
  /// @throws CudaError  A CUDA call failed.
  std::optional<StitchTile> first_wrong(void* stream) const;

  /// As `StitchRows::ready`.
  std::int64_t ready() const noexcept { return rows_.ready(); }
  /// Makes pixels as `StitchBand::gather` does.
  /// @param out  Written, in `StitchBand::format`; device memory.
  /// @param stream  A cudaStream_t.
  /// @throws std::invalid_argument  The view has another format or image, or rows that aren't ready.
  /// @throws CudaError  A CUDA call failed.
  void gather(const PixelView<MemorySpace::device>& out, void* stream) const;
  /// As `StitchRows::release`. Rows of the image before `rows` can't be made any more.
  void release(std::int64_t rows) { rows_.release(rows); }

 private:
  struct Memory;
  void check(StitchTile tile) const;

  StitchPlan plan_;
  NetworkOutput output_;
  std::unique_ptr<Memory> memory_;
  StitchRows rows_;
};

/// Cuts a tile as the host's `cut_tile` does, in the memory of the calling thread's CUDA device. It enqueues the work
/// and doesn't wait. Thread-safe.
/// @param tile  Written: rect.height x rect.width x 3 samples of device memory.
/// @param rows  All rows that the tile needs, in the image's full width; device memory.
/// @param rect  The rectangle to cut, in pixels of the image.
/// @param stream  A cudaStream_t.
/// @throws std::invalid_argument  `rows` or `tile` doesn't fit.
/// @throws CudaError  A CUDA call failed, or this build has no CUDA.
void cut_tile(std::span<std::uint8_t> tile, const ConstPixelView<MemorySpace::device>& rows, const Rect& rect,
              void* stream);

/// Maps values to samples as `StitchBand::put` does. `Sample` is std::uint8_t or std::uint16_t. Thread-safe.
/// @param to  Written, host memory: pixels x channels samples.
/// @param values  Host memory: channels x pixels values.
/// @param pixels  Number of pixels.
/// @param output  Channels, activation and range.
/// @return Statistics of the values.
template <class Sample>
MappedValues map_values(Sample* to, const float* values, std::int64_t pixels, const NetworkOutput& output);

/// Computes the statistics of `map_values` without making samples. Thread-safe.
/// @param values  Host memory: channels x pixels values.
/// @param pixels  Number of pixels.
/// @param output  Channels, activation and range.
/// @return Statistics of the values.
MappedValues look_at_values(const float* values, std::int64_t pixels, const NetworkOutput& output);

/// Side of a target pixel in pixels of an image, times 65,536: rint(65536 target / mpp). A result within `tolerance` of
/// 65,536 becomes exactly 65,536. Thread-safe.
/// @param target  Micrometres per pixel that are wanted.
/// @param mpp  Micrometres per pixel of the image.
/// @param tolerance  A part of 1, from 0.
/// @return 65,536 to 256 x 65,536.
/// @throws Error  The target is finer than the image, or more than 256 times as coarse.
std::int64_t area_factor(double target, double mpp, double tolerance = 0.02);

/// Makes an RGB image smaller, row by row. An output sample is the mean of its area, [x f, (x + 1) f) along each axis,
/// rounded half up. f is factor / 65,536, so that the weights of pixels are integers. The output has floor(size / f)
/// pixels along each axis. All memory is host memory. Not thread-safe.
class AreaResampler {
 public:
  /// Makes the whole output.
  /// @param input  Size of the input, in pixels.
  /// @param factor  65,537 to 256 x 65,536.
  /// @throws std::invalid_argument  The factor is outside of its range, or the output has no pixel.
  AreaResampler(Size input, std::int64_t factor);
  /// Makes a part of the output. The input rows are then those of `source_of(part)`.
  /// @param input  Size of the whole input, in pixels.
  /// @param factor  65,537 to 256 x 65,536.
  /// @param part  Pixels of the output.
  /// @throws std::invalid_argument  As above, or the part isn't inside the output.
  AreaResampler(Size input, std::int64_t factor, const Rect& part);

  /// @param input  Size of the input, in pixels.
  /// @param factor  65,536 to 256 x 65,536.
  /// @return Size of the output, in pixels.
  static Size size_of(Size input, std::int64_t factor) noexcept;
  /// @param part  Pixels of the output.
  /// @param factor  65,536 to 256 x 65,536.
  /// @return The pixels of the input from which the part is made.
  static Rect source_of(const Rect& part, std::int64_t factor) noexcept;
  /// @return Size of the part that this object makes, in pixels.
  Size size() const noexcept { return {part_.width, part_.height}; }
  /// @param input  Size of the input, in pixels.
  /// @param factor  65,536 to 256 x 65,536.
  /// @return Approximate host memory for the whole output, in bytes; 0 for a factor of 65,536.
  static std::uint64_t bytes(Size input, std::int64_t factor) noexcept;

  /// Takes the next row of the input. Rows behind the last one that counts are ignored.
  /// @param out  Written if this row completes the next row of the output.
  /// @param row  The row, from the source's first column on.
  /// @return Whether a row of the output was written.
  bool add(std::uint8_t* out, const std::uint8_t* row);

  /// Numbers of input rows that were taken, and of output rows that were made.
  struct Taken {
    std::int64_t rows = 0;
    std::int64_t made = 0;
  };
  /// Calls a function for each of [0, count), on any threads, and returns when all calls are done.
  using ForAll = std::function<void(std::size_t count, const std::function<void(std::size_t)>&)>;
  /// Takes the next rows of the input, and stops when `room` rows of the output are made. Columns are made in parallel.
  /// @param out  Written: up to `room` rows of the output.
  /// @param out_pitch  Bytes from one row of the output to the next.
  /// @param room  Rows of the output that have room.
  /// @param rows  The next rows of the input.
  /// @param pitch  Bytes from one row of the input to the next.
  /// @param count  Rows of the input that are there.
  /// @param for_all  Runs the tasks.
  /// @return Rows that were taken and made.
  Taken add(std::uint8_t* out, std::int64_t out_pitch, std::int64_t room, const std::uint8_t* rows, std::int64_t pitch,
            std::int64_t count, const ForAll& for_all);

 private:
  /// The next rows of input and output. All columns have the same.
  struct At {
    std::int64_t next = 0;  ///< row of the input
    std::int64_t made = 0;  ///< rows of the output
  };
  /// Samples [first, second) of rows of the output.
  using Part = std::pair<std::int64_t, std::int64_t>;

  bool completes(At& at) const noexcept;
  void add_columns(std::uint8_t* out, const std::uint8_t* row, const At& at, const Part& part);
  void add_row(std::uint64_t weight, const Part& part);
  void write(std::uint8_t* out, const Part& part) const;

  Rect part_;
  std::int64_t factor_;
  At at_;
  std::vector<std::uint32_t> across_;
  std::vector<std::uint64_t> sums_;
};

/// Chooses the level from which an image of a wanted resolution is made: the coarsest level behind `first` that is as
/// fine as the target, within `tolerance`. Thread-safe.
/// @param levels  Levels of a slide.
/// @param mpp  Micrometres per pixel of level 0.
/// @param target  Micrometres per pixel that are wanted.
/// @param first  The first level that may be chosen.
/// @param tolerance  A part of 1, from 0.
/// @return The chosen level; `first` if no other one is fine enough.
std::size_t area_level(const std::vector<Level>& levels, double mpp, double target, std::size_t first = 0,
                       double tolerance = 0.02);

/// Resamples a whole RGB image in host memory, as `AreaResampler` does. Thread-safe.
/// @param out  Written: the whole output, of the size `AreaResampler::size_of`.
/// @param in  The whole input.
/// @param factor  65,537 to 256 x 65,536.
/// @throws std::invalid_argument  The views or the factor don't fit.
void resample_area(const PixelView<MemorySpace::host>& out, const ConstPixelView<MemorySpace::host>& in,
                   std::int64_t factor);

/// Resamples a part of an RGB image in the memory of the calling thread's CUDA device. It enqueues the work and doesn't
/// wait. The pixels are bit for bit those of the host's `resample_area`. Thread-safe.
/// @param out  Written: `out.rect`. `out.image` is `AreaResampler::size_of` the input.
/// @param in  Holds at least `AreaResampler::source_of(out.rect)`.
/// @param factor  65,537 to 256 x 65,536.
/// @param stream  A cudaStream_t.
/// @throws std::invalid_argument  The views don't fit.
/// @throws CudaError  A CUDA call failed, or this build has no CUDA.
void resample_area(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
                   std::int64_t factor, void* stream);

}  // namespace slidestream
