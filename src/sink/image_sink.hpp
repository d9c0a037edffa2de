#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <slidestream/image.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/tile_encoder.hpp"
#include "image/pyramid_layout.hpp"

/// \file
/// What takes the encoded tiles of an image and its levels and makes a file that others read.

namespace slidestream {

/// What an image is. Nothing else about it gets into a file.
struct ImageDescription {
  std::string name;  ///< as people see it; any bytes
  Size size;         ///< of level 0, in pixels
  PixelFormat format;
  std::optional<double> mpp;            ///< micrometres a pixel at level 0, both ways
  std::optional<double> magnification;  ///< of the objective
  std::vector<std::string> channel_names;
  std::vector<std::byte> icc;                                 ///< ICC profile; empty: none
  std::vector<std::pair<std::string, std::string>> settings;  ///< those that decide the pixels, by name
  std::string creator;                                        ///< the program that makes it; empty: not said
  bool labels = false;                                        ///< samples are names of classes, not quantities
};

struct ImageOptions {
  TileCompression compression = TileCompression::none;
  int quality = 85;  ///< of JPEG, 1 to 100
  int tile = 256;    ///< side in pixels, a multiple of 16, 16 to 4096
  int levels = 0;    ///< 0: down to one tile
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

/// A file that was made.
struct PublishedFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
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
/// on a thread that may wait for storage. There is at most one such call at a time. Tiles that came too early wait in
/// memory: who bounds the tiles under way bounds that.
///
/// The first failure stands: `drain` throws it, later tiles are dropped, and `publish` throws it again. What is in the
/// partial file by then stays there and can be read.
class ImageSink {
 public:
  virtual ~ImageSink() = default;

  virtual const PyramidLayout& layout() const noexcept = 0;

  /// Takes a tile, each one once. \return whether the caller is to have `drain` called. \throws Error for a tile that
  /// isn't in the layout or was there before.
  [[nodiscard]] virtual bool put(int level, TileIndex index, EncodedTile tile) = 0;

  /// Writes what is there and has its turn. \throws OutputError with the file's name and the system's reason.
  virtual WrittenTiles drain() = 0;

  /// How many tiles have been written; may be asked at any time.
  virtual std::int64_t written() const noexcept = 0;

  /// After the last tile was written: makes the file durable and gives it its name. \throws OutputError; Error when
  /// tiles are missing.
  virtual PublishedFile publish() = 0;

  /// Takes no more tiles, and lets go of those that wait; the partial file stays as it is. Thread-safe.
  virtual void drop() noexcept = 0;

  /// Removes the partial file, where it wasn't published: nobody drains it.
  virtual void discard() noexcept = 0;
};

/// Checks what was asked for before anything is written. \throws ConfigError in one line.
void check_image(const ImageDescription& description, const ImageOptions& options);

/// A pyramid as one OME-TIFF file, which is called `partial_name(file)` until it is published, and is a file that can
/// be read from the first moment on: tiles that aren't there yet look white (labels: 0). \param data_at  tiles begin at
/// this byte or later; a hole before them makes a file of more than 4 GiB in no time. \throws OutputError, ConfigError.
std::unique_ptr<ImageSink> make_ome_tiff_sink(const std::filesystem::path& file, const ImageDescription& description,
                                              const ImageOptions& options, std::uint64_t data_at = 0);

}  // namespace slidestream
