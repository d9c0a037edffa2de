#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/jpeg/jpeg_batch.hpp"
#include "cuda/jpeg2000/coding.hpp"

/// \file
/// What a batch of JPEG 2000 tiles is, told to the device: the host's half of `Jpeg2000BatchDecoder`, plain C++.

namespace slidestream::cuda {

/// What a batch may hold at most. Memory, pinned and on the device, follows from it: see `Jpeg2000Batch::upload_bytes`
/// and `Jpeg2000BatchDecoder::device_bytes`. What finds no room goes to the CPU's decoder, a tile at a time.
///
/// A batch is of luminance or of RGB, perhaps with luminance beside it. It is decoded in waves, one after the other in
/// the same scratch memory. Bit planes alone take 1.75 bytes per pixel of a wave, 4.5 for RGB. With everything else a
/// tile of 256 x 256 pixels, of 24 KB compressed, takes 170 KB in waves of 16,384 tiles and 250 KB in waves of 32. For
/// RGB it takes 360 and 510 KB. For thousands of tiles that is more than a batch's pixels take.
struct Jpeg2000BatchLimits {
  std::uint32_t tiles = 0;
  std::uint64_t compressed_bytes = 0;  ///< of all tiles together, below 4 GiB
  PixelFormat format = luminance_format;
  bool with_luminance = false;         ///< as well, where the format is RGB
  std::uint32_t codings = 16;          ///< different main headers; 32 KB each. Slides have one or two
  std::uint32_t parts = 0;             ///< tile-parts; 0: two a tile and 255 more
  std::uint32_t white_rectangles = 0;  ///< missing tiles; with luminance each takes two rectangles
  // Of a wave.
  std::uint32_t wave_tiles = 0;  ///< 0: all of the batch
  std::uint64_t wave_bytes = 0;  ///< compressed; 0: all of the batch. A tile that has more finds no room
  std::uint32_t areas = 0;       ///< of 256 x 256 samples that are decoded; 0: one a tile, three for RGB, at least 48
  /// Code-blocks of these areas: 52 bytes of records and 24 of joined bits each, besides what they hold; 0: 80 an area
  /// and 512 more.
  std::uint32_t blocks = 0;
  std::uint32_t pieces = 0;  ///< of blocks in layers beyond the first; 0: 16 an area and 4,096 more
  /// For packet headers, 4 bytes each; 0: 2,560 a tile, for whole groups of 32 tiles.
  std::uint64_t state_words = 0;
  /// For bit planes, 4 bytes each; 0: 14 planes of 256 x 256 samples a tile, 36 for RGB. That is for one tile more than
  /// a wave has, and for at least 17.
  std::uint64_t plane_words = 0;
  /// Tiles that are made of three components at a time, 512 KB each; 0: an eighth of a wave, for RGB a quarter, 1 to
  /// 320. Large tiles share that memory: one of 1024 x 1024 pixels wants 19 of these, one of 512 x 512 five.
  std::uint32_t colour_tiles = 0;
};

/// Values of components that a tile made of three keeps while it is made: two components' samples.
inline constexpr std::size_t colour_floats = 2 * small_jpeg2000_side * small_jpeg2000_side;
/// The same of a large tile of up to `side` pixels across and down: besides, two resolutions.
constexpr SLIDESTREAM_HOST_DEVICE std::size_t large_floats(std::uint32_t side) {
  const std::size_t area = std::size_t{side} * side;
  return 2 * area + area / 4 + area / 16;
}

/// A tile as the device sees it.
struct alignas(16) Jpeg2000DeviceTile {
  // Bytes from the plane's base to the tile's own pixel (0, 0), which may lie outside.
  std::int64_t luminance_origin;
  std::int64_t rgb_origin;
  std::uint32_t luminance_pitch;  ///< bytes; 0: nobody wants luminance
  std::uint32_t rgb_pitch;        ///< the same of RGB
  std::uint32_t offset;           ///< bytes from the compressed buffer's base
  std::uint32_t coding;
  std::uint32_t first_part;
  std::uint32_t first_block;  ///< of its wave
  std::uint16_t parts;
  PixelsOf luminance_of;
  PixelsOf rgb_of;
  std::uint16_t first_row;  ///< of the rectangle that is wanted
  std::uint16_t rows;
  std::uint16_t first_column;
  std::uint16_t columns;
  std::uint32_t converted;  ///< 1: colours are converted, and luminance is that of converted RGB
};
static_assert(sizeof(Jpeg2000DeviceTile) == 64);

/// Which kernels make a tile's pixels.
enum class Jpeg2000Way : std::uint8_t {
  first_alone,  ///< the first component as luminance
  colour,       ///< pixels of three components, or RGB
  large         ///< any, of large tiles
};
inline constexpr std::size_t jpeg2000_ways = 3;

constexpr SLIDESTREAM_HOST_DEVICE Jpeg2000Way way_of(const Jpeg2000DeviceTile& tile, const Jpeg2000Coding& coding) {
  if (coding.large != 0) return Jpeg2000Way::large;
  const bool first_alone = coding.components == 1 && tile.rgb_pitch == 0 && tile.converted == 0;
  return first_alone ? Jpeg2000Way::first_alone : Jpeg2000Way::colour;
}

/// Tiles that stand one behind the other in a batch, and are decoded at a time.
struct Jpeg2000Wave {
  std::uint32_t first_tile = 0;
  std::uint32_t tiles = 0;
  std::uint32_t areas = 0;  ///< that are decoded
  std::uint32_t blocks = 0;
  std::uint32_t state_words = 0;  ///< of the tile that wants most
  std::uint32_t large_side = 0;   ///< of the largest of the tiles that are large, pixels, a power of two
  std::uint64_t bytes = 0;        ///< compressed
};

/// Cuts the memory that travels to the device; the same on both sides. Only what is in use travels.
struct Jpeg2000UploadLayout {
  explicit Jpeg2000UploadLayout(const Jpeg2000BatchLimits& given);
  Jpeg2000BatchLimits limits;  ///< with zeros filled in
  // Offsets in bytes.
  std::size_t tiles;
  std::size_t parts;
  std::size_t rectangles;
  std::size_t codings;
  std::size_t size;
};

/// Collects the tiles of one batch. It is filled and given to the decoder. Then it must stay as it is until the stream
/// has passed the copy of `Jpeg2000BatchDecoder::enqueue`, before it is cleared and filled again. Used by one thread at
/// a time. Doesn't allocate once warm.
///
/// The `SlotDecoder` of each slot of a GPU has one: a worker of the graph fills it in the decode stage. Each
/// `WindowDecoder` has one, for Python.
class Jpeg2000Batch {
 public:
  /// Memory that `upload` must have; pinned, or copies aren't asynchronous.
  static std::size_t upload_bytes(const Jpeg2000BatchLimits& limits);

  /// `upload` is aligned to 64 bytes, and stays the batch's as long as it lives.
  Jpeg2000Batch(const Jpeg2000BatchLimits& limits, std::span<std::byte> upload);

  /// \param converts  colours of the next tiles are converted: for RGB only
  void clear(bool converts = false);

  /// Adds a tile, for pixels of the limits' format whatever `demand` says, whose compressed bytes will lie `offset`
  /// bytes into the compressed buffer on the device. Parses the headers in `bytes`, and asks the rule whether it is
  /// what `demand` wants; packets aren't touched. \returns none, and the tile has number `tiles() - 1`; else why the
  /// tile isn't for the device. Then only a coding may have been added, and the CPU's decoder has to say what the tile
  /// is.
  Jpeg2000Reason add(std::span<const std::byte> bytes, std::uint64_t offset, const TileDemand& demand,
                     const JpegPlacement& placement);

  /// Fills a rectangle with white: a missing tile. False when there is no room.
  bool add_white(const JpegPlacement& placement);

  std::uint32_t tiles() const noexcept { return tile_count_; }
  std::uint32_t white_rectangles() const noexcept { return rectangle_count_; }

  // What the decoder must know.
  std::span<const Jpeg2000Wave> waves() const noexcept { return waves_; }  ///< of all tiles, in order
  std::uint32_t codings() const noexcept { return coding_count_; }
  std::uint32_t parts() const noexcept { return part_count_; }
  /// Whether there are tiles with that wavelet transform which go that way.
  bool has(bool reversible, Jpeg2000Way way) const noexcept {
    return has_[reversible ? 1 : 0][static_cast<std::size_t>(way)];
  }
  /// Whether there are tiles with code-blocks of other styles than 0.
  bool has_styles() const noexcept { return has_styles_; }
  bool converts() const noexcept { return converts_; }
  std::uint64_t compressed_end() const noexcept { return compressed_end_; }  ///< bytes of the buffer that are used
  const Jpeg2000UploadLayout& layout() const noexcept { return layout_; }
  std::span<const std::byte> upload() const noexcept { return upload_; }

 private:
  /// What the tile's pixels are made of.
  struct Verdict {
    PixelsOf luminance = PixelsOf::first;
    PixelsOf rgb = PixelsOf::first;
    std::uint32_t components = 1;
  };

  /// \param rgb_wanted  else luminance alone is, of a batch of both
  Jpeg2000Reason parse(std::span<const std::byte> bytes, const TileDemand& demand, bool rgb_wanted, Verdict& verdict,
                       std::uint32_t& coding);
  Jpeg2000Reason judge(TileDemand demand, bool rgb_wanted, Verdict& verdict) const;
  Jpeg2000Reason coding_for(std::uint32_t components, std::uint32_t& coding);
  /// The wave that a tile joins: a new one where it finds no room in the last.
  Jpeg2000Wave& wave_for(const Jpeg2000Coding& coding, std::uint32_t areas, std::size_t bytes);

  template <class T>
  T* part(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(upload_.data() + offset);
  }

  Jpeg2000UploadLayout layout_;
  std::span<std::byte> upload_;
  std::uint32_t tile_count_ = 0;
  std::uint32_t rectangle_count_ = 0;
  std::uint32_t coding_count_ = 0;
  std::uint32_t part_count_ = 0;
  std::uint64_t compressed_end_ = 0;
  std::array<std::array<bool, jpeg2000_ways>, 2> has_{};
  bool has_styles_ = false;
  bool converts_ = false;

  std::vector<Jpeg2000Wave> waves_;
  Jpeg2000Header header_;
  struct Known {
    Jpeg2000Parameters parameters;
    std::uint32_t components;  ///< that are decoded
    bool operator==(const Known&) const = default;
  };
  std::vector<Known> known_;  ///< of the codings
  // The main header before: tiles of a slide have equal ones.
  std::vector<std::byte> last_main_;
  std::uint32_t last_coding_ = 0;
};

}  // namespace slidestream::cuda
