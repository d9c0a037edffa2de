#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/image.hpp>
#include <span>
#include <string>
#include <vector>

/// \file
/// Whole-slide images: opening, what they hold, and the decoding of single tiles to 8-bit luminance or RGB.

namespace slidestream {

/// How tiles are compressed.
enum class Codec { none, jpeg, jpeg2000, lzw, deflate, zstd, webp, lzma, lerc, packbits, other };

/// What the coded components are.
enum class Colour { grey, grey_inverted, rgb, ycbcr };

/// "jpeg", "jpeg2000", ... and "grey", "rgb", ... as they stand in results.
const char* name(Codec codec) noexcept;
const char* name(Colour colour) noexcept;

/// Where a tile's bytes lie in the file. A length of 0 is a missing tile: it is white by definition.
struct TileRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// One resolution of a slide. Stripped files appear as tiles as wide as the image.
struct Level {
  std::int64_t width = 0;       ///< pixels
  std::int64_t height = 0;      ///< pixels
  std::int64_t tile_width = 0;  ///< pixels; edge tiles are padded to it
  std::int64_t tile_height = 0;
  std::int64_t columns = 0;  ///< tiles across
  std::int64_t rows = 0;     ///< tiles down
  bool tiled = true;         ///< false: strips
  int compression = 0;       ///< TIFF Compression tag
  Codec codec = Codec::none;
  Colour colour = Colour::rgb;
  double downsample = 1.0;  ///< level 0's width over this width
  bool shrunk = false;      ///< sizes are half of what the file has: `OpenOptions::shrink_on_load`
};

/// What a slide says of itself.
struct SlideInfo {
  std::filesystem::path path;
  std::uint64_t file_size = 0;  ///< bytes
  std::string format;           ///< "aperio", "ome-tiff", "tiff"
  bool big_tiff = false;
  std::vector<Level> levels;                      ///< largest first
  std::vector<std::string> associated;            ///< names of the images that are not levels: thumbnail, label, macro
  std::optional<double> mpp;                      ///< micrometres a pixel at level 0
  std::optional<double> magnification;            ///< objective power
  std::map<std::string, std::string> properties;  ///< vendor's key = value pairs; "description" holds the first line
};

/// A writable rectangle of 8-bit pixels in host memory, and what they shall be.
struct HostPixels {
  std::uint8_t* data = nullptr;  ///< first sample of the first pixel
  std::ptrdiff_t pitch = 0;      ///< bytes from a row to the next
  std::int64_t width = 0;        ///< pixels to write
  std::int64_t height = 0;
  PixelFormat format = luminance_format;  ///< or `rgb_format`

  /// Bytes of the rectangle's part of a row.
  std::size_t row_bytes() const noexcept { return static_cast<std::size_t>(width) * format.pixel_bytes(); }
};

/// What the colours of a level's pixels are: an ICC profile.
struct IccProfile {
  std::vector<std::byte> bytes;  ///< as the file holds them; empty: there is none that can be used
  std::string space;             ///< of the device's colours, such as "RGB" or "GRAY"
  std::string fault;             ///< one line that says why one that is there can't be used; else empty
};

struct OpenOptions {
  std::int64_t max_pixels = std::int64_t{1} << 36;  ///< larger levels 0 are refused
  int retries = 0;  ///< of a read that failed for a reason that may pass; `input.retries` says how long they take
  bool retry_opening = true;           ///< false: the retries are for what is read later
  std::function<bool()> give_up = {};  ///< asked, by any thread, while a retry is waited for: true ends the retries
  double mpp = 0.0;                    ///< micrometres a pixel of level 0, in place of what the file says; 0: that
  /// Levels of JPEG tiles, whose sides are multiples of 16, are given as half as wide and high (rounded up), with tiles
  /// half as large: libjpeg decodes them so, by a 4 x 4 inverse DCT. `Level::downsample` stays as it is.
  bool shrink_on_load = false;
};

/// An open slide. Its directories were read and checked at opening; tiles are read by position, so that any number of
/// threads may use one object at the same time. Nothing is mapped into memory: a file that shrinks gives an error.
class Slide {
 public:
  /// \throws SlideError "PATH: cause" when it isn't a slide that can be read, naming the tag where one is at fault;
  /// StorageError when it may be one, and its storage failed.
  static std::shared_ptr<const Slide> open(const std::filesystem::path& path, const OpenOptions& options = {});
  ~Slide();
  Slide(const Slide&) = delete;
  Slide& operator=(const Slide&) = delete;

  const SlideInfo& info() const noexcept;

  /// A level as the file has it: that of `info()`, but for one that is `shrunk`.
  const Level& coded_level(std::size_t level) const;

  /// Number `row * columns + column` of a level's tiles.
  TileRange tile(std::size_t level, std::int64_t index) const;

  /// Whether a tile's bytes can be where `range` says. False for an offset of 0 with a length and for a range outside
  /// the file (of its size at opening): such a tile is bad, and must not be read.
  bool contains(const TileRange& range) const noexcept;

  /// Fills `to` from byte `offset` of the file: positional, no shared file offset, thread-safe.
  /// \throws SlideError when the file ends before, or the system fails.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

  /// Reads the ICC profile (TIFF's tag 34675) of a level's directory, or of level 0's where that has none. One that is
  /// damaged, or larger than 16 MiB, is no error of the slide. \throws SlideError when the system fails.
  IccProfile icc_profile(std::size_t level) const;

  struct Impl;
  const Impl& impl() const noexcept { return *impl_; }

 private:
  explicit Slide(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Decodes tiles to luminance (the codec's own Y where it codes one) or to RGB (what libjpeg-turbo gives with its
/// defaults; OpenJPEG's samples, and YCbCr that JPEG 2000 left as it is by libjpeg's formula, subsampled chroma
/// repeated; grey as R = G = B). One object per thread; it keeps the codecs' state between tiles of any slides and
/// doesn't allocate per tile once warm, as far as the codecs allow.
class TileDecoder {
 public:
  TileDecoder();
  ~TileDecoder();
  TileDecoder(TileDecoder&&) noexcept;
  TileDecoder& operator=(TileDecoder&&) noexcept;

  /// Decodes tile `index` of `level` from its compressed bytes (as read from `slide.tile(level, index)`), and writes
  /// the rectangle of the tile that begins at tile pixel (`from_x`, `from_y`) and has `out`'s size; it lies inside the
  /// tile. Its format is `luminance_format` or `rgb_format`. \throws TileError when the bytes are bad (reported damage,
  /// or too small for the part inside the image); `out` is then unspecified.
  void decode(const Slide& slide, std::size_t level, std::int64_t index, std::span<const std::byte> bytes,
              std::int64_t from_x, std::int64_t from_y, const HostPixels& out);

  /// RGB and luminance of one rectangle: what two calls of `decode` give, and for all codecs but JPEG 2000 in the time
  /// of one.
  void decode_both(const Slide& slide, std::size_t level, std::int64_t index, std::span<const std::byte> bytes,
                   std::int64_t from_x, std::int64_t from_y, const HostPixels& rgb, const HostPixels& luminance);

 private:
  void decode(const Slide& slide, std::size_t level, std::int64_t index, std::span<const std::byte> bytes,
              std::int64_t from_x, std::int64_t from_y, const HostPixels& out, const HostPixels* luminance);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads and decodes rows [`first_row`, `first_row + out.height`) x columns [`first_column`, ...) of a level in the
/// calling thread: the simple way to walk a slide. Missing tiles are white. `out.format` is `luminance_format`.
/// \param on_bad_tile  whether a tile that can't be decoded becomes white. \throws SlideError naming the tile on the
/// first one otherwise.
void read_luminance(const Slide& slide, std::size_t level, std::int64_t first_column, std::int64_t first_row,
                    const HostPixels& out, BadTilePolicy on_bad_tile = BadTilePolicy::fail);

/// The same with `rgb_format`.
void read_rgb(const Slide& slide, std::size_t level, std::int64_t first_column, std::int64_t first_row,
              const HostPixels& out, BadTilePolicy on_bad_tile = BadTilePolicy::fail);

}  // namespace slidestream
