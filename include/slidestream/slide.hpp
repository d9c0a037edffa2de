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

/// @file
/// Whole-slide images: opens slides, describes them and decodes single tiles to 8-bit luminance or RGB. All pixels are
/// in host memory.

namespace slidestream {

/// How tiles are compressed. `openslide`: OpenSlide decodes them, whatever they are.
enum class Codec { none, jpeg, jpeg2000, jpegls, lzw, deflate, zstd, webp, lzma, lerc, packbits, openslide, planes };

/// Meaning of the coded components.
enum class Colour { grey, grey_inverted, rgb, ycbcr };

/// Name of a codec in results. Thread-safe.
/// @param codec  The codec.
/// @return "jpeg", "jpeg2000", ...; "planes" where red, green and blue are tiles of their own.
const char* name(Codec codec) noexcept;
/// Name of a colour in results. Thread-safe.
/// @param colour  The colour.
/// @return "grey", "grey_inverted", "rgb" or "ycbcr".
const char* name(Colour colour) noexcept;

/// Place of a tile's bytes in the slide. A tile with a length of 0 is missing, and white by definition.
struct TileRange {
  std::uint64_t offset = 0;  ///< bytes; further files of a slide begin behind the first
  std::uint64_t length = 0;  ///< bytes
};

/// One resolution of a slide. A strip of a stripped file counts as a tile as wide as the image.
struct Level {
  std::int64_t width = 0;       ///< pixels
  std::int64_t height = 0;      ///< pixels
  std::int64_t tile_width = 0;  ///< pixels; tiles at the edges are padded to this size, strips aren't
  std::int64_t tile_height = 0;
  std::int64_t columns = 0;  ///< tiles across
  std::int64_t rows = 0;     ///< tiles down
  bool tiled = true;         ///< false: strips
  Codec codec = Codec::none;
  Colour colour = Colour::rgb;
  double downsample = 1.0;  ///< as `SlideInfo::downsample_x` has it
  bool shrunk = false;      ///< sizes are half of the file's: `OpenOptions::shrink_on_load`
  /// Pixels of level 0 along one of a level that ends before the slide's right and lower borders, as the file has them;
  /// 0: sizes say it. Nothing is known of what lies behind its end.
  std::int64_t cut_factor = 0;
};

/// Description of a slide.
struct SlideInfo {
  std::filesystem::path path;
  std::uint64_t file_size = 0;          ///< bytes, of all files of the slide
  std::string format;                   ///< "aperio", "dicom", "ome-tiff", "tiff"; OpenSlide's name of the vendor
  std::string container;                ///< "TIFF", "BigTIFF", "DICOM", "OpenSlide"
  std::string library;                  ///< that reads it: "OpenSlide 4.0.1, FILE"; empty: none that was loaded
  std::vector<Level> levels;            ///< largest first
  std::vector<std::string> associated;  ///< names of the images that are not levels: thumbnail, label, macro
  std::optional<double> mpp;            ///< micrometres per pixel at level 0: across, and unless `mpp_y` is set, down
  std::optional<double> mpp_y;          ///< down, if pixels aren't square: both differ by more than 1 %
  std::optional<double> said_mpp_y;     ///< down, if the slide says another size than `mpp`, by however little
  std::optional<double> magnification;  ///< objective power; 10 / mpp if `OpenOptions` gave the mpp
  std::vector<std::string> channels;    ///< names of the channels, if the slide has several
  /// Numbers of those that lie in the file, if not all do; empty if which ones do isn't known.
  std::optional<std::vector<std::size_t>> held_channels;
  bool is_srgb = false;               ///< colours are converted from its ICC profile (`OpenOptions::to_srgb`)
  bool labels = false;                ///< samples are labels of a network or a mask that slidestream wrote
  std::vector<std::string> warnings;  ///< doubts at opening, one line each, without the path
  std::vector<std::string> notes;     ///< what opening did unasked, likewise
  std::map<std::string, std::string> properties;  ///< the vendor's keys and values; "description" is the first line

  /// One size for pixels that needn't be square.
  /// @return Side of a square with the area of a pixel of level 0, in micrometres; nothing if `mpp` isn't known.
  std::optional<double> mean_mpp() const;

  /// Refuses slides whose pixels aren't square.
  /// @param what  The setting or argument that needs one pixel size, such as "model.mpp".
  /// @param remedy  What to do instead, such as "set input.mpp".
  /// @throws SlideError  `mpp_y` is set.
  void require_square_pixels(const std::string& what, const std::string& remedy) const;

  /// Refuses images of labels: they are read as they are, and neither averaged nor taken for colours.
  /// @param why  What would do so, such as "pixels of another size are means of several".
  /// @throws SlideError  `labels` is set.
  void require_no_labels(const std::string& why) const;

  /// Pixels of level 0 per pixel of a level, along a row: a whole number where the level's width is level 0's divided
  /// by it and rounded up or down, and of a level that is cut; else the ratio of the widths. So both directions may
  /// differ.
  /// @param level  Number of the level.
  /// @return The factor; 1 for level 0.
  /// @throws std::out_of_range  There is no such level.
  double downsample_x(std::size_t level) const;
  /// Pixels of level 0 per pixel of a level, along a column, as `downsample_x`.
  /// @param level  Number of the level.
  /// @return The factor; 1 for level 0.
  /// @throws std::out_of_range  There is no such level.
  double downsample_y(std::size_t level) const;
};

/// A writable rectangle of 8-bit pixels in host memory, and their format.
struct HostPixels {
  std::uint8_t* data = nullptr;  ///< first sample of the first pixel
  std::ptrdiff_t pitch = 0;      ///< bytes from one row to the next
  std::int64_t width = 0;        ///< pixels to write
  std::int64_t height = 0;
  PixelFormat format = luminance_format;  ///< or `rgb_format`

  /// Size of a row of the rectangle, without the bytes up to the next row.
  /// @return Bytes.
  std::size_t row_bytes() const noexcept { return static_cast<std::size_t>(width) * format.pixel_bytes(); }
};

/// The ICC profile of a level's colours.
struct IccProfile {
  std::vector<std::byte> bytes;  ///< unchanged from the file; empty: no usable profile
  std::string name;              ///< what the profile calls itself, of printable ASCII; empty: it doesn't say
  std::string space;             ///< colour space of the device, such as "RGB" or "GRAY"
  std::string fault;             ///< one line that says why the profile isn't usable; else empty
};

/// A thumbnail, label, macro or other image that isn't a level. RGB, 8 bits per sample, rows without gaps.
struct AssociatedImage {
  Size size;
  std::vector<std::uint8_t> pixels;
};

class DecodeMemory;

/// Options for opening a slide.
struct OpenOptions {
  std::int64_t max_pixels = std::int64_t{1} << 36;  ///< largest width x height of a level
  std::int64_t max_tiles = std::int64_t{1} << 21;   ///< of all levels together; 16 bytes each while the slide is open
  int retries = 0;  ///< of a read after an error that may be temporary; `input.retries` says how long they wait
  bool retry_opening = true;  ///< false: only reads after the opening are retried
  /// Any thread asks while it waits for a retry, while it opens the slide, and when a tile takes longer than a second.
  /// True ends that work: with the error of the storage, or with `StoppedError`.
  std::function<bool()> give_up = {};
  /// Budget that decoding takes tiles' memory from, shared by slides; null: no limit except that of a single tile.
  std::shared_ptr<DecodeMemory> decode_memory = nullptr;
  double mpp = 0.0;            ///< micrometres per pixel of level 0, instead of the file's; 0: the file's
  bool mpp_is_listed = false;  ///< a list gives `mpp`: a line says where it isn't within ten times the slide's own
  double mpp_default = 0.0;    ///< micrometres per pixel if the file says none; 0: then it isn't known
  int channel = -1;  ///< the channel that is read as grey, from 0, if there are several; -1: such slides are refused
  static constexpr int any_channel = -2;  ///< as `channel`: the first one that the file holds
  /// Where OpenSlide is for slides that have no other reader: "auto" (searched for), "never" (such slides are refused),
  /// else its library's path, or a folder with it.
  std::string openslide = "auto";
  const char* channel_name = "input.channel";  ///< name of `channel` in errors
  /// Tiles are converted from the ICC profile of level 0 to sRGB: relative colorimetric, without black point
  /// compensation. Luminance is that of converted RGB. A slide without a usable RGB profile, and a grey one, stays as
  /// it is, with a warning. Associated images aren't converted.
  bool to_srgb = false;
  /// With `to_srgb`: a warning says of a slide that it is converted, not that it stays, and a slide whose profile is
  /// sRGB's stays.
  bool srgb_for_browsers = false;
  /// Halves levels whose tiles are JPEG and have sides that are multiples of 16. Width and height are rounded up.
  /// libjpeg then decodes tiles at half size by a 4 x 4 inverse DCT. `Level::downsample` doesn't change.
  bool shrink_on_load = false;
};

/// An open slide. Its directories are read and checked when it is opened, within bounds
/// over all of them (docs/reliability.md). It is immutable, so any number of threads may
/// use it. The file isn't mapped into memory, so that reading a truncated file gives an error.
class Slide {
 public:
  /// Opens a slide. Thread-safe.
  /// @param path  Path of the file, of any file of a slide of several, or of a folder with one such slide.
  /// @param options  Limits, retries and pixel size.
  /// @return The slide.
  /// @throws SlideError  The file isn't a slide that can be read. The message names the tag at fault.
  /// @throws StorageError  The storage failed with an error that may be temporary.
  /// @throws StoppedError  `give_up` ended it.
  static std::shared_ptr<const Slide> open(const std::filesystem::path& path, const OpenOptions& options = {});
  ~Slide();
  Slide(const Slide&) = delete;
  Slide& operator=(const Slide&) = delete;

  /// Describes the slide.
  /// @return The description, which lives as long as the slide.
  const SlideInfo& info() const noexcept;

  /// A level with the sizes that the file has, even if the level is `shrunk`.
  /// @param level  Number of the level.
  /// @return The level, which lives as long as the slide.
  /// @throws std::out_of_range  There is no such level.
  const Level& coded_level(std::size_t level) const;

  /// Place of a tile in the slide.
  /// @param level  Number of the level.
  /// @param index  row * columns + column.
  /// @return Offset and length in bytes; a length of 0 if the tile is missing.
  /// @throws std::out_of_range  There is no such tile or level.
  TileRange tile(std::size_t level, std::int64_t index) const;

  /// Tells whether a tile can be read: it is missing, or its bytes are within a file's size at opening and not at
  /// offset 0. Any other tile is bad.
  /// @param range  Place of a tile, from `tile`.
  /// @return Whether it can be read.
  bool contains(const TileRange& range) const noexcept;

  /// Reads bytes of one file. Thread-safe, because no threads share a file position.
  /// @param offset  First byte to read, as `TileRange::offset`.
  /// @param to  Written, whole.
  /// @throws SlideError  The file is too short or has changed, or the system fails.
  /// @throws StorageError  The storage failed with an error that may be temporary, and so did all retries.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

  /// Reads the ICC profile of a level, or of level 0 if the level has none. Thread-safe.
  /// @param level  Number of the level.
  /// @return The profile. If it is damaged or larger than 16 MiB, `IccProfile::fault` says so.
  /// @throws SlideError  The file can't be read.
  /// @throws std::out_of_range  There is no such level.
  IccProfile icc_profile(std::size_t level) const;

  /// Decodes an associated image in the calling thread. Transparent pixels are blended over white. Waits while other
  /// threads use all of `OpenOptions::decode_memory`. Thread-safe.
  /// @param index  Index into `info().associated`.
  /// @return The image.
  /// @throws SlideError  The image is damaged, has more than 2^26 pixels, or takes more than all of that memory.
  /// @throws StoppedError  `give_up` ended it.
  /// @throws std::out_of_range  There is no such image.
  AssociatedImage read_associated(std::size_t index) const;

  struct Impl;

 private:
  friend const Impl& impl_of(const Slide& slide) noexcept;
  friend std::shared_ptr<const Slide> make_slide(std::unique_ptr<Impl> impl);
  explicit Slide(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Decodes tiles to luminance or RGB. Each thread needs its own object, which keeps the codecs' state between tiles.
///
/// Colours are as `OpenOptions::to_srgb` says. Luminance is the codec's Y if it has one and colours aren't converted.
/// JPEG gives the RGB of libjpeg-turbo's defaults. JPEG 2000 gives OpenJPEG's samples; components that are still YCbCr
/// are converted by libjpeg's formula, with subsampled chroma repeated. Grey gives R = G = B.
class TileDecoder {
 public:
  TileDecoder();
  ~TileDecoder();
  TileDecoder(TileDecoder&&) noexcept;
  TileDecoder& operator=(TileDecoder&&) noexcept;

  /// Decodes a rectangle of a tile. Waits while other threads use all of `OpenOptions::decode_memory`.
  /// @param slide  The slide.
  /// @param level  Number of the level.
  /// @param index  row * columns + column of the tile.
  /// @param bytes  The tile's compressed bytes, from `slide.tile(level, index)`.
  /// @param from_x  First column of the rectangle, in pixels of the tile.
  /// @param from_y  First row of the rectangle, in pixels of the tile.
  /// @param out  Written: a rectangle inside the tile, as `luminance_format` or `rgb_format`.
  /// @throws TileError  The bytes are damaged, or decode to too few pixels. `out` is then undefined.
  /// @throws std::bad_alloc  There isn't enough memory. `out` is then undefined.
  /// @throws SlideError  The tile takes more than all of `OpenOptions::decode_memory`.
  /// @throws StoppedError  `give_up` ended it.
  /// @throws std::invalid_argument  The rectangle is outside the tile, or its format is another one.
  /// @throws std::out_of_range  There is no such tile or level.
  void decode(const Slide& slide, std::size_t level, std::int64_t index, std::span<const std::byte> bytes,
              std::int64_t from_x, std::int64_t from_y, const HostPixels& out);

  /// Decodes a rectangle to RGB and to luminance. The pixels are those of two calls of `decode`. Only JPEG 2000 needs
  /// to decode the tile twice. Errors are those of `decode`.
  /// @param slide  The slide.
  /// @param level  Number of the level.
  /// @param index  row * columns + column of the tile.
  /// @param bytes  The tile's compressed bytes.
  /// @param from_x  First column of the rectangle, in pixels of the tile.
  /// @param from_y  First row of the rectangle, in pixels of the tile.
  /// @param rgb  Written, as `rgb_format`.
  /// @param luminance  Written, as `luminance_format`; as large as `rgb`.
  void decode_both(const Slide& slide, std::size_t level, std::int64_t index, std::span<const std::byte> bytes,
                   std::int64_t from_x, std::int64_t from_y, const HostPixels& rgb, const HostPixels& luminance);

 private:
  void decode(const Slide& slide, std::size_t level, std::int64_t index, std::span<const std::byte> bytes,
              std::int64_t from_x, std::int64_t from_y, const HostPixels& out, const HostPixels* luminance);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads and decodes a rectangle of a level to luminance, in the calling thread. Missing tiles are white. Thread-safe.
/// @param slide  The slide.
/// @param level  Number of the level.
/// @param first_column  First column of the rectangle, in pixels of the level.
/// @param first_row  First row of the rectangle, in pixels of the level.
/// @param out  Written, as `luminance_format`. Its size is the rectangle's.
/// @param on_bad_tile  `white`: a tile that can't be decoded becomes white.
/// @throws SlideError  The file can't be read, or a tile can't be decoded. The message names the tile.
/// @throws std::invalid_argument  The rectangle is outside the level, or the format is another one.
void read_luminance(const Slide& slide, std::size_t level, std::int64_t first_column, std::int64_t first_row,
                    const HostPixels& out, BadTilePolicy on_bad_tile = BadTilePolicy::fail);

/// Reads and decodes a rectangle of a level to RGB, as `read_luminance` does. Thread-safe.
/// @param slide  The slide.
/// @param level  Number of the level.
/// @param first_column  First column of the rectangle, in pixels of the level.
/// @param first_row  First row of the rectangle, in pixels of the level.
/// @param out  Written, as `rgb_format`. Its size is the rectangle's.
/// @param on_bad_tile  `white`: a tile that can't be decoded becomes white.
/// @param bad  Written, unless null: true for each tile that became white so. It has a place for each tile of the
/// level.
/// @throws SlideError  The file can't be read, or a tile can't be decoded. The message names the tile.
/// @throws std::invalid_argument  The rectangle is outside the level, or the format is another one.
void read_rgb(const Slide& slide, std::size_t level, std::int64_t first_column, std::int64_t first_row,
              const HostPixels& out, BadTilePolicy on_bad_tile = BadTilePolicy::fail, std::vector<bool>* bad = nullptr);

/// Counts the tiles that a smaller level has lost: the file lacks them although it has some tile of level 0 there. They
/// are white in that level alone. What is blank may be left out of all levels. Thread-safe.
/// @param slide  The slide.
/// @param slide  The slide.
/// @param level  Number of the level. Of level 0 all tiles count that the file lacks.
/// @return Number of lost tiles.
/// @throws std::out_of_range  There is no such level.
std::int64_t count_lost_tiles(const Slide& slide, std::size_t level);

}  // namespace slidestream
