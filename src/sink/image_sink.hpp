#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/image.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/copied_level.hpp"
#include "codec/tile_encoder.hpp"
#include "image/pyramid_layout.hpp"
#include "image/value_range.hpp"

/// \file
/// What takes the encoded tiles of an image and its levels and makes a file that others read.

namespace slidestream {

/// A compression that pixels have lost something by.
struct LossyCompression {
  double ratio = 1.0;       ///< bytes of pixels by coded bytes
  const char* method = "";  ///< as DICOM calls it (LossyImageCompressionMethod)
};

/// What an image is. Nothing else about it gets into a file, except the attributes of `ImageOptions::dicom`.
struct ImageDescription {
  std::string name;  ///< as people see it; any bytes
  Size size;         ///< of level 0, in pixels
  PixelFormat format;
  std::optional<double> mpp;            ///< micrometres per pixel at level 0: across, and unless `mpp_y` is set, down
  std::optional<double> mpp_y;          ///< down, where that is another size
  std::optional<double> magnification;  ///< of the objective
  std::vector<std::string> channel_names;
  std::vector<std::byte> icc;                                 ///< ICC profile; empty: none
  std::vector<std::pair<std::string, std::string>> settings;  ///< those that decide the pixels, by name
  std::vector<std::pair<std::string, std::string>> figures;   ///< what operators found of the slide, by name
  std::optional<LossyCompression> lossy;                      ///< of the slide that it is made of
  std::string creator;                                        ///< the program that makes it; empty: not said
  bool labels = false;                                        ///< samples are names of classes, not quantities
  int blank_label = 0;                                        ///< of labels: what isn't there yet looks like this
};

struct ImageOptions {
  ImageFormat format = ImageFormat::ome_tiff;
  TileCompression compression = TileCompression::none;
  int quality = 85;                                         ///< of JPEG, 1 to 100
  ChromaSubsampling subsampling = ChromaSubsampling::s420;  ///< of JPEG in colour
  /// With `copy`: what level 0's tiles are, which come from elsewhere and are never encoded.
  CopiedLevelPtr copied = nullptr;
  int tile = 256;  ///< side in pixels, a multiple of 16, 16 to 4096
  int levels = 0;  ///< 0: down to one tile
  int zarr_version = 2;
  DicomConfig dicom = {};
};

/// A tile as the file holds it. What `owner` holds (the bytes, or a slot that they lie in) is let go as soon as the
/// tile is written, which is how a bounded pool of slots holds encoders back.
struct EncodedTile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  EncodedTile() = default;
  EncodedTile(std::span<const std::byte> of, std::shared_ptr<const void> kept) : bytes(of), owner(std::move(kept)) {}
  explicit EncodedTile(std::vector<std::byte> own) {
    auto kept = std::make_shared<const std::vector<std::byte>>(std::move(own));
    bytes = *kept;
    owner = std::move(kept);
  }
};

/// A file or a folder that was made.
struct PublishedFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> digest = std::nullopt;  ///< `file_digest` of what was written, where the sink knows it
};

/// What a call of `ImageSink::drain` wrote.
struct WrittenTiles {
  std::uint64_t tiles = 0;
  std::uint64_t bytes = 0;
};

/// Takes tiles from any threads in any order, and writes them in the order of publishing (`PyramidLayout::position`),
/// so that the file is the same whatever the threads.
///
/// A thread that must not wait calls `put`, which never does; when that returns true, somebody has to call `drain` once
/// on a thread that may wait for storage. There is at most one such call at a time, or where tiles are files of their
/// own some: these take tiles in that order, and who is first with one is chance. Tiles that came too early wait in
/// memory: who bounds the tiles under way bounds that.
///
/// The first failure stands: `drain` throws it, later tiles are dropped, and `publish` throws it again. What is in the
/// partial file by then stays there and can be read.
class ImageSink {
 public:
  virtual ~ImageSink() = default;

  virtual const PyramidLayout& layout() const noexcept = 0;

  /// Makes tiles as this sink takes them, for any image with the same pixel format, meaning and options but for what is
  /// copied. One a thread.
  virtual std::unique_ptr<TileEncoder> make_encoder() const = 0;

  /// Takes a tile, each one once. \return whether the caller is to have `drain` called. \throws Error for a tile that
  /// isn't in the layout or was there before.
  [[nodiscard]] virtual bool put(int level, TileIndex index, EncodedTile tile) = 0;

  /// Writes what is there and has its turn. \throws OutputError with the file's name and the system's reason.
  virtual WrittenTiles drain() = 0;

  /// How many tiles have been written; may be asked at any time.
  virtual std::int64_t written() const noexcept = 0;

  /// The bytes of these tiles; may be asked at any time.
  virtual std::uint64_t written_bytes() const noexcept = 0;

  /// Between which values level 0's channels lie, where their type doesn't tell it: for viewers. After the last tile
  /// and before `publish`; formats that can't say it ignore it.
  virtual void set_values(const std::vector<ValueRange>& /*values*/) {}

  /// After the last tile was written: makes the image durable and gives it its name. What it is made of, that which
  /// others open first. \throws OutputError; Error when tiles are missing.
  virtual std::vector<PublishedFile> publish() = 0;

  /// Takes no more tiles, and lets go of those that wait; the partial file stays as it is. Thread-safe.
  virtual void drop() noexcept = 0;

  /// Removes the partial file, where it wasn't published: nobody drains it.
  virtual void discard() noexcept = 0;
};

/// Checks what was asked for before anything is written. \throws ConfigError in one line.
void check_image(const ImageDescription& description, const ImageOptions& options);

/// A sink of `options.format`, as image_formats.cpp has it. \param file  where the image lies when it is whole, with a
/// suffix of the format's. \throws OutputError, ConfigError.
std::unique_ptr<ImageSink> make_image_sink(const std::filesystem::path& file, const ImageDescription& description,
                                           const ImageOptions& options);

/// A pyramid as one OME-TIFF file, which is called `partial_name(file)` until it is published, and is a file that can
/// be read from the first moment on: tiles that aren't there yet look white (labels: `blank_label`). \param data_at
/// tiles begin at this byte or later; a hole before them makes a file of more than 4 GiB in no time. \throws
/// OutputError, ConfigError.
std::unique_ptr<ImageSink> make_ome_tiff_sink(const std::filesystem::path& file, const ImageDescription& description,
                                              const ImageOptions& options, std::uint64_t data_at = 0);

/// A pyramid as a folder of chunks, OME-Zarr 0.4 (zarr_version 2) or 0.5 (3). It is called `partial_name(file)` until
/// it is published, and can be read from the first moment on: chunks appear whole, and what isn't there yet is white
/// (labels: `blank_label`). \throws OutputError, ConfigError.
std::unique_ptr<ImageSink> make_ome_zarr_sink(const std::filesystem::path& file, const ImageDescription& description,
                                              const ImageOptions& options);

/// The largest ICC profile that each Deep Zoom tile gets: tiles of 256 x 256 pixels are about as large.
inline constexpr std::size_t most_dzi_profile = 16384;

/// A pyramid as JPEG files in the folder NAME_files beside the Deep Zoom image NAME.dzi, with NAME.view.html, a page
/// that shows them. Until they are published the names are NAME.partial_files and so on, the page can be opened, and
/// files appear whole. An ICC profile of up to `most_dzi_profile` bytes is in each tile.
/// \param options  levels down to one pixel. \throws OutputError, ConfigError.
std::unique_ptr<ImageSink> make_dzi_sink(const std::filesystem::path& file, const ImageDescription& description,
                                         const ImageOptions& options);

/// A pyramid as a folder of DICOM files, a VL Whole Slide Microscopy Image per level: `level-0.dcm` and so on. It is
/// called `partial_name(file)` until it is published, and its files appear whole. UIDs are those of the content.
/// \throws OutputError, ConfigError; Error where the size of a pixel isn't known, or uncompressed pixels don't fit.
std::unique_ptr<ImageSink> make_dicom_sink(const std::filesystem::path& file, const ImageDescription& description,
                                           const ImageOptions& options);

}  // namespace slidestream
