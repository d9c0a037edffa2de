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

/// \file
/// Tiles that overlap: where they lie in an image, how they are cut from it, and how what a network gives for them is
/// put together again. All in integers, so that neither the order in which tiles arrive nor who computes can matter.

#if defined(__CUDACC__)
#define SLIDESTREAM_STITCH __host__ __device__
#else
#define SLIDESTREAM_STITCH
#endif

namespace slidestream {

struct Level;

/// Tiles along one axis of an image. Tile i is in step at i (tile - overlap), but the last may be moved back.
/// Neighbours i - 1 and i are blended over the `overlap` samples from (tile - overlap) i on, wherever tile i begins; in
/// front of them tile i - 1 alone counts, and behind them tile i, up to the blend with its other neighbour.
struct StitchAxis {
  std::int64_t size = 1;     ///< samples of the image
  std::int64_t tile = 1;     ///< samples of a tile; more than `size` where the image is smaller
  std::int64_t overlap = 0;  ///< samples that neighbours share, 0 to tile / 2
  std::int64_t count = 1;    ///< tiles
  std::int64_t last = 0;     ///< where the last one begins

  SLIDESTREAM_STITCH constexpr std::int64_t step() const noexcept { return tile - overlap; }
  /// First sample of a tile.
  SLIDESTREAM_STITCH constexpr std::int64_t begin(std::int64_t i) const noexcept {
    return i + 1 == count ? last : i * step();
  }
  /// The last tile that counts at a sample.
  SLIDESTREAM_STITCH constexpr std::int64_t tile_at(std::int64_t x) const noexcept {
    const std::int64_t i = x / step();
    return i < count ? i : count - 1;
  }
  /// A sample's place in the blend of tile `i`, which is `tile_at` it, with the one before; -1: tile i alone counts.
  SLIDESTREAM_STITCH constexpr std::int64_t blend_at(std::int64_t x, std::int64_t i) const noexcept {
    const std::int64_t t = x - i * step();
    return i > 0 && t < overlap ? t : -1;
  }
  /// How many samples need none of the tiles behind tile `i`.
  SLIDESTREAM_STITCH constexpr std::int64_t whole_after(std::int64_t i) const noexcept {
    return i + 1 == count ? size : (i + 1) * step();
  }
  /// How many samples there are up to the last one that tile `i` counts at.
  SLIDESTREAM_STITCH constexpr std::int64_t end_of(std::int64_t i) const noexcept {
    return i + 1 == count ? size : (i + 1) * step() + overlap;
  }
};

/// n = max(1, ceil((size - tile) / step) + 1) tiles with the last at size - tile (`shift`), or max(1, ceil((size -
/// overlap) / step)) in step (`mirror`). \throws std::invalid_argument unless sizes are positive and 0 <= overlap <=
/// tile / 2.
StitchAxis stitch_axis(std::int64_t size, std::int64_t tile, std::int64_t overlap, StitchEdge edge);

/// What tile i weighs at place t of its blend with tile i - 1, which weighs 256 less that: r(t) of `tent`.
SLIDESTREAM_STITCH constexpr int tent_weight(std::int64_t t, std::int64_t overlap) noexcept {
  return static_cast<int>((512 * t + 256 + overlap) / (2 * overlap));
}

/// r(0) to r(overlap - 1): `tent` as above; `cosine` rint(128 (1 - cos(pi (t + 1/2) / overlap))) in the first half and
/// what is missing to 256 in the second; `none` 0 in the first half and 256 from floor(overlap / 2) on.
std::vector<std::uint16_t> stitch_ramp(StitchWeights weights, std::int64_t overlap);

/// The weights of all tiles at a sample: 256 along each axis.
inline constexpr std::uint32_t stitch_whole = 65536;

/// From the sum of w v over tiles whose weights are all of `stitch_whole`.
SLIDESTREAM_STITCH constexpr std::uint32_t stitched(std::uint32_t sum) noexcept {
  return (sum + stitch_whole / 2) >> 16;
}
/// The same where some tiles are absent: `weight` is what the others weigh, not 0.
SLIDESTREAM_STITCH constexpr std::uint32_t stitched(std::uint64_t sum, std::uint64_t weight) noexcept {
  return static_cast<std::uint32_t>((2 * sum + weight) / (2 * weight));
}

/// A tile's place in the grid of tiles.
struct StitchTile {
  std::int64_t column = 0;
  std::int64_t row = 0;
};

/// The tiles of an image, and the image that is put together from them.
struct StitchPlan {
  Size input;              ///< pixels that tiles are cut from
  Size image;              ///< samples of what is put together: ceil(input / scale)
  std::int64_t side = 1;   ///< pixels of a tile
  std::int64_t scale = 1;  ///< pixels a sample
  StitchAxis x;            ///< in samples
  StitchAxis y;

  std::int64_t tiles() const noexcept { return x.count * y.count; }
  StitchTile tile(std::int64_t number) const noexcept { return {number % x.count, number / x.count}; }
  /// What a tile is cut from, in pixels of the input; it may reach beyond that.
  Rect input_of(StitchTile tile) const noexcept {
    return {x.begin(tile.column) * scale, y.begin(tile.row) * scale, side, side};
  }
  /// Rows [first, second) of the input that a row of tiles is cut from, mirrored ones being those that stand for them.
  std::pair<std::int64_t, std::int64_t> input_rows(std::int64_t row) const noexcept;
};

/// \param scale  pixels a sample of what comes out; `side` and `overlap` are multiples of it.
/// \throws std::invalid_argument when the numbers don't fit.
StitchPlan plan_stitching(Size input, std::int64_t side, std::int64_t overlap, std::int64_t scale, StitchEdge edge);

/// Cuts a tile from RGB of host memory. What is outside the image is mirrored with the edge sample repeated (numpy
/// `symmetric`). \param tile  side x side x 3 samples, written. \param rows  holds the rows that the tile needs, in
/// full width. \throws std::invalid_argument when it doesn't.
void cut_tile(std::span<std::uint8_t> tile, const ConstPixelView<MemorySpace::host>& rows, const Rect& rect);

/// Of which rows of tiles something is kept, two at a time, and which rows of the image can be made of them.
class StitchRows {
 public:
  explicit StitchRows(const StitchPlan& plan);

  bool has_room(std::int64_t row) const noexcept { return row < freed_ + 2; }
  /// One tile of a row is there, or never will be.
  void arrived(std::int64_t row);
  std::int64_t ready() const noexcept { return ready_; }
  void release(std::int64_t rows);

 private:
  StitchAxis down_;
  std::vector<std::int64_t> missing_;  ///< tiles of each row that haven't arrived
  std::int64_t whole_ = 0;             ///< rows of tiles from the top of which all have
  std::int64_t freed_ = 0;             ///< rows of tiles from the top that nobody needs any more
  std::int64_t ready_ = 0;
};

/// Where what a network gives for tiles is kept until it is put together: two rows of tiles, as samples of an image.
/// Tiles may come in any order, each once; what comes out depends on which have come, and on nothing else.
///
/// Threads: `put` and `gather` of different tiles and rectangles at the same time, as long as nothing else is called;
/// all else from one thread at a time.
class StitchBand {
 public:
  /// \throws std::invalid_argument for vectors, and where channels aren't 1 to 16, or a range is empty.
  StitchBand(const StitchPlan& plan, const NetworkOutput& output, StitchWeights weights);

  /// Bytes of host memory that it takes.
  static std::uint64_t bytes(const StitchPlan& plan, const NetworkOutput& output) noexcept;
  /// What comes out: samples of the network's channels, or one label for all.
  static PixelFormat format(const NetworkOutput& output) noexcept;

  /// Whether there is room for tiles of a row.
  bool has_room(std::int64_t row) const noexcept { return rows_.has_room(row); }
  /// Maps a tile's values, channel after channel, to samples: clamp(rint((x - low) (max / (high - low)))) in float32.
  /// Its row has room. False where one of the values isn't a finite number: then the tile isn't there.
  [[nodiscard]] bool put(StitchTile tile, std::span<const float> values);
  /// Says that the tile was put, or that it never will be.
  void arrived(StitchTile tile, bool present);

  /// How many rows of the image can be made.
  std::int64_t ready() const noexcept { return rows_.ready(); }
  /// Makes pixels of rows before `ready`, and not before those that were released. Where no tile is present: white for
  /// RGB of 8 bits, else 0.
  void gather(const PixelView<MemorySpace::host>& out) const;
  /// Rows before this one were made, and won't be again.
  void release(std::int64_t rows) { rows_.release(rows); }

 private:
  template <class Sample>
  void gather_rows(const PixelView<MemorySpace::host>& out) const;

  StitchPlan plan_;
  NetworkOutput output_;
  int channels_;
  SampleType sample_;  ///< of what is kept
  std::vector<std::uint16_t> ramp_;
  std::size_t tile_bytes_;
  std::unique_ptr<std::byte[]> tiles_;  ///< two rows, of which a tile row has one by its number's parity
  std::vector<std::uint8_t> present_;   ///< by number
  StitchRows rows_;
};

/// The same in the memory of one CUDA device, of values that are there, into views that are there: the pixels are
/// `StitchBand`'s, to the bit. What is asked for happens behind what is on the stream, a cudaStream_t, that it is asked
/// with: on one stream, or on several that the caller has wait for each other. Nothing waits but what says so.
///
/// Threads: one at a time, with the device that it was made for as the current one. All that was asked for has
/// happened before it goes away. A build without CUDA throws CudaError from the constructor.
class DeviceStitchBand {
 public:
  /// Takes `StitchBand::bytes` of the current device's memory, and little more. Waits.
  /// \throws std::invalid_argument as StitchBand; CudaError, also where so much memory isn't free.
  DeviceStitchBand(const StitchPlan& plan, const NetworkOutput& output, StitchWeights weights);
  ~DeviceStitchBand();
  DeviceStitchBand(const DeviceStitchBand&) = delete;
  DeviceStitchBand& operator=(const DeviceStitchBand&) = delete;

  /// Whether there is room for tiles of a row.
  bool has_room(std::int64_t row) const noexcept { return rows_.has_room(row); }
  /// Maps a tile's values, channel after channel in device memory, and counts it as arrived. Its row has room. A tile
  /// with a value that isn't a finite number is absent. \throws std::invalid_argument, CudaError.
  void put(StitchTile tile, std::span<const float> values, void* stream);
  /// Says that a tile never will be put. \throws std::invalid_argument, CudaError.
  void skip(StitchTile tile, void* stream);
  /// The first tile, in row order, of those that were put before this on `stream` with a value that isn't a finite
  /// number. Waits for the stream. \throws CudaError.
  std::optional<StitchTile> first_wrong(void* stream) const;

  /// How many rows of the image can be made.
  std::int64_t ready() const noexcept { return rows_.ready(); }
  /// Makes pixels as `StitchBand::gather` does. \throws std::invalid_argument, CudaError.
  void gather(const PixelView<MemorySpace::device>& out, void* stream) const;
  /// Rows before this one have been asked for, and won't be again.
  void release(std::int64_t rows) { rows_.release(rows); }

 private:
  struct Memory;
  void check(StitchTile tile) const;

  StitchPlan plan_;
  NetworkOutput output_;
  std::unique_ptr<Memory> memory_;
  StitchRows rows_;
};

/// Cuts a tile as `cut_tile` does, from RGB in the memory of the calling thread's CUDA device, behind what is on a
/// stream, a cudaStream_t; doesn't wait for it. \throws std::invalid_argument as on the host; CudaError, also in a
/// build without CUDA.
void cut_tile(std::span<std::uint8_t> tile, const ConstPixelView<MemorySpace::device>& rows, const Rect& rect,
              void* stream);

/// The position of a value that isn't a finite number, while mapping `pixels` values of each of `channels` to samples
/// side by side; -1: all are. The mapping is `StitchBand::put`'s. `Sample` is std::uint8_t or std::uint16_t.
template <class Sample>
std::int64_t map_values(Sample* to, const float* values, std::int64_t pixels, int channels, float low, float high);

/// Pixels of the image that a pixel at another resolution stands for, times 65,536: rint(65536 target / mpp), and
/// exactly 65,536 where that is within 2 %. \param mpp  micrometres a pixel of the image. \throws Error where the
/// target is finer than the image, or 256 times as coarse.
std::int64_t area_factor(double target, double mpp);

/// Makes an image of RGB smaller while its rows pass by: a sample is the mean over its area [x f, (x + 1) f), with the
/// integer weights that `factor` = 65536 f gives to pixels, rounded half up. There are floor(size / f) samples.
class AreaResampler {
 public:
  /// \param factor  65,537 to 256 x 65,536. \throws std::invalid_argument otherwise, or where nothing is left.
  AreaResampler(Size input, std::int64_t factor);
  /// Makes a part of that alone. Rows are those of `source_of` it.
  /// \throws std::invalid_argument as above, or where the part isn't inside.
  AreaResampler(Size input, std::int64_t factor, const Rect& part);

  static Size size_of(Size input, std::int64_t factor) noexcept;
  /// The pixels of the input that a part of the output is made from.
  static Rect source_of(const Rect& part, std::int64_t factor) noexcept;
  Size size() const noexcept { return {part_.width, part_.height}; }
  /// Bytes of host memory that it takes, about.
  static std::uint64_t bytes(Size input, std::int64_t factor) noexcept;

  /// Takes the next row of the input, from the source's first column on; true: it completed the next row of the output,
  /// which was written. Rows behind the last one that counts are passed over.
  bool add(std::uint8_t* out, const std::uint8_t* row);

  /// Rows of the input that were taken, and of the output that these completed.
  struct Taken {
    std::int64_t rows = 0;
    std::int64_t made = 0;
  };
  /// Calls a function for each of [0, count), on as many threads as it likes, and returns when all are done.
  using ForAll = std::function<void(std::size_t count, const std::function<void(std::size_t)>&)>;
  /// Takes the input's next `count` rows, the first at `rows`, but none behind the one that completes the `room`-th of
  /// the output. Columns are what is parallel. \param out  room for `room` rows. Pitches are in bytes.
  Taken add(std::uint8_t* out, std::int64_t out_pitch, std::int64_t room, const std::uint8_t* rows, std::int64_t pitch,
            std::int64_t count, const ForAll& for_all);

 private:
  /// Where in the input and the output it is, which is the same for all columns.
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

/// The level that an image of that resolution is made from: the coarsest that is as fine, within 2 %, behind level
/// `first`, or `first` itself. \param mpp  micrometres a pixel of level 0.
std::size_t area_level(const std::vector<Level>& levels, double mpp, double target, std::size_t first = 0);

/// All of it: `out.image` is `AreaResampler::size_of` it, and both views hold their whole images.
void resample_area(const PixelView<MemorySpace::host>& out, const ConstPixelView<MemorySpace::host>& in,
                   std::int64_t factor);

/// Makes `out.rect` in the memory of the calling thread's CUDA device, behind what is on a stream; doesn't wait for it.
/// `in` holds `AreaResampler::source_of` it, of an image of RGB of which `out.image` is `AreaResampler::size_of`. The
/// pixels are `resample_area`'s on the host, to the bit. \param stream  a cudaStream_t. \throws std::invalid_argument
/// when the views don't fit; CudaError, also in a build without CUDA.
void resample_area(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
                   std::int64_t factor, void* stream);

}  // namespace slidestream
