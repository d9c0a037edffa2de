#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cuda/jpeg/jpeg_coding.hpp"
#include "cuda/jpeg/jpeg_geometry.hpp"
#include "cuda/jpeg/jpeg_header.hpp"

/// \file
/// What a batch of JPEG tiles is, told to the device: the host's half of `JpegBatchDecoder`, plain C++.

namespace slidestream::cuda {

/// What a batch may hold at most. Memory, pinned and on the device, follows from it: see `JpegBatch::upload_bytes` and
/// `JpegBatchDecoder::device_bytes`.
struct JpegBatchLimits {
  std::uint32_t tiles = 0;
  std::uint64_t compressed_bytes = 0;  ///< of all tiles together; a tile named twice counts twice
  /// Distinct sets of tables, sampling and order; 2.4 KB each. Slides have one or two; tiles with tables of their own
  /// each count.
  std::uint32_t codings = 1024;
  /// Parts of tiles that are decoded side by side, 64 bytes of device memory each: restart intervals, and pieces of
  /// tiles where these are few. 0: enough for the tiles, and for one in 512 compressed bytes.
  std::uint32_t segments = 0;
  std::uint32_t white_rectangles = 0;     ///< missing tiles
  PixelFormat format = luminance_format;  ///< of the plane: `luminance_format`, or `rgb_format`
  /// For RGB only: the sum of `cuda::component_bytes` of all tiles, what is decoded before it is upsampled: 1.5 bytes a
  /// pixel at 4:2:0, 3 where nothing is subsampled. At most 16 GiB are used.
  std::uint64_t component_bytes = 0;
  /// For RGB only: each tile's luminance is written as well, as a run for luminance alone has it.
  bool with_luminance = false;
};

/// Where a tile's pixels go in the batch's plane.
struct JpegPlacement {
  std::uint64_t offset = 0;  ///< bytes from the plane's base to the rectangle's first pixel
  std::uint32_t pitch = 0;   ///< bytes from a row to the next; 0: nobody wants it, of RGB with luminance beside it
  std::uint32_t from_x = 0;  ///< first tile pixel of the rectangle
  std::uint32_t from_y = 0;
  std::uint32_t width = 0;  ///< pixels; the rectangle must lie inside the frame, or the tile isn't for the device
  std::uint32_t height = 0;
  // For `with_luminance`: where the same rectangle's luminance goes.
  std::uint64_t luminance_offset = 0;  ///< bytes from the plane's base, too, to the rectangle's first pixel
  std::uint32_t luminance_pitch = 0;   ///< bytes from a row to the next
};

/// A tile as the device sees it.
struct alignas(16) JpegDeviceTile {
  std::uint64_t scan_offset;  ///< bytes from the compressed buffer's base
  std::int64_t origin;        ///< bytes from the plane's base to the tile's own pixel (0, 0), which may lie outside
  std::uint32_t scan_bytes;
  std::uint32_t first_chunk;  ///< of its part of the buffer without stuffing, 16 bytes each
  std::uint32_t pitch;
  std::uint32_t coding;
  std::uint16_t first_row;
  std::uint16_t rows;
  std::uint16_t first_column;
  std::uint16_t columns;
  std::uint32_t first_segment;
  std::uint32_t segments;
  std::uint16_t cycles_across;
  std::uint16_t cycle_rows;
  std::uint32_t cycles_per_interval;  ///< 0: no restart markers
  std::uint32_t piece_bytes;          ///< 0: not cut into pieces
  std::uint16_t flags;                ///< of the constants below
  std::uint16_t blocks_in_cycle;
  std::uint32_t first_block;  ///< of its components, blocks of 64 bytes from their base; even
  std::uint16_t frame_width;  ///< pixels
  std::uint16_t frame_height;

  static constexpr std::uint16_t inverted = 1;
  static constexpr std::uint16_t uniform = 2;
  static constexpr std::uint16_t kind_shift = 8;  ///< the rest: how RGB is made of components, see octets.hpp
};
static_assert(sizeof(JpegDeviceTile) == 80);

/// Where a tile's luminance goes beside its RGB.
struct JpegDeviceLuminance {
  std::int64_t origin;  ///< as the tile's
  std::uint32_t pitch;
  std::uint32_t unused;
};

/// What a warp makes RGB of at a time: columns and rows of the frame.
inline constexpr std::uint32_t stretch_columns = 256;
inline constexpr std::uint32_t stretch_rows = 32;

/// Stretches of the frame that hold some of the rectangle that is wanted: those across, and all.
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t stretches_across(const JpegDeviceTile& tile) {
  return (tile.first_column + tile.columns - 1U) / stretch_columns + 1 - tile.first_column / stretch_columns;
}
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t stretch_count(const JpegDeviceTile& tile) {
  return stretches_across(tile) *
         ((tile.first_row + tile.rows - 1U) / stretch_rows + 1 - tile.first_row / stretch_rows);
}

/// Segments that are decoded with one coding in one mode.
struct JpegDeviceGroup {
  std::uint32_t coding;
  std::uint32_t begin;  ///< of the queue
  std::uint32_t end;
  std::uint32_t unused;
};

struct JpegDeviceRectangle {
  std::uint64_t offset;
  std::uint32_t pitch;
  std::uint32_t width;  ///< bytes
  std::uint32_t height;
  std::uint32_t unused;
};

/// Notes that a missing tile is white, in pixels of `format` and perhaps in luminance beside them. False, and nothing
/// is noted, when there is no room among `rectangles`, of which `count` are in use.
inline bool add_white_rectangles(const JpegPlacement& placement, const PixelFormat& format, bool with_luminance,
                                 std::span<JpegDeviceRectangle> rectangles, std::uint32_t& count) {
  if (count + (with_luminance ? 2 : 1) > rectangles.size()) return false;
  const auto pixel_bytes = static_cast<std::uint32_t>(format.pixel_bytes());
  if (placement.pitch > 0) {
    rectangles[count++] = {placement.offset, placement.pitch, placement.width * pixel_bytes, placement.height, 0};
  }
  if (with_luminance) {
    rectangles[count++] = {placement.luminance_offset, placement.luminance_pitch, placement.width, placement.height, 0};
  }
  return true;
}

/// Cuts the memory that travels to the device; the same on both sides.
struct JpegUploadLayout {
  explicit JpegUploadLayout(const JpegBatchLimits& given);
  JpegBatchLimits limits;  ///< with `segments` filled in
  // Offsets in bytes.
  std::size_t codings;
  std::size_t tiles;
  std::size_t groups;
  std::size_t rectangles;
  std::size_t queue;
  std::size_t luminance;
  std::size_t size;
};

/// JPEGTables of a level, parsed once. Refers to the bytes, which must stay as long as it is used.
struct JpegLevelTables {
  JpegLevelTables() = default;
  explicit JpegLevelTables(std::span<const std::byte> bytes) : reason(parse_jpeg_tables(bytes, references)) {}
  JpegTableReferences references;
  JpegReason reason = JpegReason::none;  ///< other than none: none of the level's tiles is for the device
};

/// Collects the tiles of one batch. It is filled, finished, given to the decoder, and must then stay as it is until the
/// stream has passed `JpegBatchDecoder::enqueue`'s copy; then it is cleared and filled again. Used by one thread at a
/// time. Doesn't allocate once warm.
class JpegBatch {
 public:
  /// Memory that `upload` must have; pinned, or copies aren't asynchronous.
  static std::size_t upload_bytes(const JpegBatchLimits& limits);

  /// `upload` is aligned to 64 bytes, and stays the batch's as long as it lives.
  JpegBatch(const JpegBatchLimits& limits, std::span<std::byte> upload);

  void clear();

  /// Adds a tile whose compressed bytes will lie `offset` bytes into the compressed buffer on the device. Parses the
  /// header in `bytes`, and asks the rule whether it is what `demand` wants; the scan's data aren't touched. \returns
  /// none, and the tile has number `tiles() - 1`; else why the tile isn't for the device: nothing was added, and the
  /// CPU's decoder has to say what it is.
  JpegReason add(std::span<const std::byte> bytes, std::uint64_t offset, const JpegLevelTables& tables,
                 const TileDemand& demand, const JpegPlacement& placement) {
    return add_front(bytes, bytes.size(), offset, tables, demand, placement);
  }

  /// The same of a tile of `length` bytes, of which `front` are the first: enough, or its header is taken as damaged.
  JpegReason add_front(std::span<const std::byte> front, std::uint64_t length, std::uint64_t offset,
                       const JpegLevelTables& tables, TileDemand demand, const JpegPlacement& placement);

  /// Fills a rectangle with white, of its luminance as well where the batch has that: a missing tile. False when there
  /// is no room.
  bool add_white(const JpegPlacement& placement);

  /// Orders the work for a device that decodes `lanes` segments at once (see `JpegBatchDecoder::lanes`).
  void finish(std::uint32_t lanes);

  std::uint32_t tiles() const noexcept { return tile_count_; }
  /// To be filled: two a missing tile where the batch has luminance beside RGB, and both are wanted.
  std::uint32_t white_rectangles() const noexcept { return rectangle_count_; }

  // What the decoder must know.
  struct Mode {
    std::uint32_t first_group = 0;
    std::uint32_t groups = 0;
    std::uint32_t segments = 0;
    std::uint32_t lookup_words = 0;  ///< the most
  };
  const Mode& mode(LaneMode mode) const noexcept { return modes_[static_cast<std::size_t>(mode)]; }
  std::uint32_t segments() const noexcept { return segment_count_; }
  std::uint32_t codings() const noexcept { return coding_count_; }
  std::uint32_t groups() const noexcept { return group_count_; }
  std::uint64_t compressed_end() const noexcept { return compressed_end_; }  ///< bytes of the buffer that are used
  std::uint32_t most_pieces() const noexcept { return most_pieces_; }        ///< of a tile; 0: none is cut
  std::uint32_t most_stretches() const noexcept { return most_stretches_; }  ///< of a tile's RGB: see `convert.cu`
  std::uint32_t octet_kinds() const noexcept { return octet_kinds_; }        ///< of the tiles, a bit each
  const JpegUploadLayout& layout() const noexcept { return layout_; }
  std::span<const std::byte> upload() const noexcept { return upload_; }

 private:
  struct Known {
    std::uint32_t coding;
    JpegReason reason;
  };
  struct Seen;

  JpegReason coding_for(const JpegHeader& header, PixelsOf pixels_of, std::uint32_t& coding);
  JpegReason make_coding(const JpegHeader& header, PixelsOf pixels_of, std::uint32_t& coding);
  std::uint32_t group_for(std::uint32_t coding, LaneMode mode);
  void cut_into_pieces(std::uint32_t lanes);
  void order_queue();

  template <class T>
  T* part(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(upload_.data() + offset);
  }

  JpegUploadLayout layout_;
  std::span<std::byte> upload_;
  std::uint32_t tile_count_ = 0;
  std::uint32_t rectangle_count_ = 0;
  std::uint32_t coding_count_ = 0;
  std::uint32_t group_count_ = 0;
  std::uint32_t segment_count_ = 0;
  std::uint32_t chunk_count_ = 0;
  std::uint64_t compressed_end_ = 0;
  std::uint32_t most_pieces_ = 0;
  std::uint32_t block_count_ = 0;  // of components
  std::uint32_t most_stretches_ = 0;
  std::uint32_t octet_kinds_ = 0;
  Mode modes_[lane_modes];

  // Codings by the hash of their key; keys are compared byte by byte.
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::vector<std::vector<std::byte>> keys_;
  // The header before, if its tables were the level's own: tiles of a slide differ in their data alone.
  JpegHeader last_header_;
  PixelsOf last_pixels_of_ = PixelsOf::first;
  std::uint32_t last_coding_ = 0;
  bool has_last_ = false;

  std::vector<std::uint32_t> group_of_tile_;
  std::vector<std::uint32_t> group_keys_;  // coding * 8 + mode
  std::vector<std::int32_t> groups_of_coding_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace slidestream::cuda
