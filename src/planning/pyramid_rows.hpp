#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/image.hpp>

#include "cuda/encode/encode_batch.hpp"
#include "image/pyramid_layout.hpp"
#include "planning/operator_needs.hpp"
#include "sink/image_formats.hpp"

/// \file
/// Levels of images that a device makes: which rows a batch has of each, which rows of tiles become whole with it, and
/// the memory of that. Arithmetic alone.

namespace slidestream {

/// An image whose levels a device may make.
struct DeviceImage {
  std::size_t op = 0;  ///< that makes it, among those that pixels pass by
  PixelFormat format;
  ImageOptions options;
  bool is_encoded = false;  ///< its tiles leave the device as JPEG, otherwise its rows do

  std::int64_t pixel_bytes() const noexcept { return static_cast<std::int64_t>(format.pixel_bytes()); }
  /// Whether whole tiles leave the device one after the other, each as the rows of pixels that its file holds. Copies
  /// of small tiles one by one would take longer than the host does.
  bool is_cut() const {
    return options.compression == TileCompression::none && raw_tile_bytes() >= std::int64_t{128} << 10 &&
           (format.channels == 1 || !traits_of(options.format).has_planes);
  }
  std::int64_t raw_tile_bytes() const noexcept { return std::int64_t{options.tile} * options.tile * pixel_bytes(); }
  /// Room for a tile of JPEG on an average: half of the pixels, a quarter of coloured ones of 4:2:0, and as much as
  /// pixels where the quality is above 90. A run of tiles that takes more leaves the device as rows.
  std::int64_t encoded_tile_bytes() const noexcept;
  /// For runs of so many tiles.
  cuda::JpegEncoderLimits encoder_limits(std::size_t tiles) const noexcept;
};

/// Images of a run in the order of its operators; none when one of them isn't 8 bits a sample, which is what devices
/// make levels of, or when tiles are copied.
std::vector<DeviceImage> device_images(const Config& config, const Operators& operators);

/// What of a level a batch has.
struct BatchLevel {
  std::int64_t first = 0;       ///< row; of a row of tiles that earlier batches didn't fill
  std::int64_t kept = 0;        ///< rows that earlier batches made
  std::int64_t count = 0;       ///< rows, with those that this one completes
  std::int64_t first_tile = 0;  ///< row of tiles
  std::int64_t tile_rows = 0;   ///< that become whole
  std::int64_t left = 0;        ///< rows for the next batch: the last ones
  std::int64_t offset = 0;      ///< of the first row in the image's memory, in bytes
  std::int64_t pitch = 0;       ///< bytes from a row to the next
};

/// Of an image's levels.
struct PyramidRows {
  /// When rows [before, after) arrive.
  PyramidRows(const PyramidLayout& layout, std::int64_t pixel_bytes, std::int64_t before, std::int64_t after);

  std::vector<BatchLevel> levels;
  std::int64_t bytes = 0;

  /// A row of tiles.
  struct TileRow {
    int level;
    std::int64_t row;
  };
  /// Those that become whole, in the order of publishing.
  std::vector<TileRow> published;
};

/// The most that a batch of `rows` rows of an image of `width` columns has, whatever came before and however high the
/// image is. More rows never take less.
struct PyramidRoom {
  PyramidRoom(const DeviceImage& image, std::int64_t width, std::int64_t rows);

  std::int64_t bytes = 0;  ///< of all levels' rows
  std::int64_t tiles = 0;  ///< that become whole
};

/// Where rows that wait for the next batch lie, of all levels; a level's pitch is that of `PyramidRows`.
struct KeptRows {
  explicit KeptRows(const PyramidLayout& layout, std::int64_t pixel_bytes);

  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

/// Rows of an image that a device reduces at a time, as many as `bytes` of memory allow besides kept rows; 0: too
/// little, or levels that it doesn't make.
std::int64_t rows_at_a_time(const DeviceImage& image, const PyramidLayout& layout, std::int64_t bytes);

/// An image's part of memory that all share by their pixels' bytes.
std::int64_t share_of(std::span<const DeviceImage> images, std::size_t index, std::int64_t bytes);

}  // namespace slidestream
