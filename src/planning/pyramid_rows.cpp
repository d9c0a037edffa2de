#include "planning/pyramid_rows.hpp"

#include <algorithm>

#include "cuda/pyramid/band_reducer.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t alignment = 256;

constexpr std::int64_t aligned(std::int64_t bytes) noexcept { return (bytes + alignment - 1) / alignment * alignment; }

/// Rows that are reduced at a time: many enough for a launch, and few for the memory of their sums.
constexpr std::int64_t most_rows_at_a_time = 2048;
constexpr std::int64_t least_rows_at_a_time = 32;

/// Bytes that a band's bits may take in the encoder's scratch memory besides the bits.
constexpr std::uint64_t band_bytes = 32;

constexpr int high_quality = 90;

bool device_encodes(const ImageOptions& options) {
  return traits_of(options.format).takes_encoded_tiles && options.compression == TileCompression::jpeg &&
         options.tile % 16 == 0 && options.tile >= 16 &&
         options.tile <= static_cast<int>(cuda::JpegEncoderLimits::most_side);
}

/// Rows of tiles of a level that are published once so many of the image's rows are known.
std::int64_t published_rows(const PyramidLayout& layout, int level, std::int64_t base_rows) noexcept {
  const std::int64_t whole = base_rows >= layout.size(0).height ? layout.rows(0) : base_rows / layout.tile();
  return whole == 0 ? 0 : layout.completed_rows(level, whole - 1);
}

}  // namespace

std::int64_t DeviceImage::encoded_tile_bytes() const noexcept {
  const bool halved = format.channels == 3 && options.subsampling == ChromaSubsampling::s420;
  const std::int64_t part = options.quality > high_quality ? 1 : halved ? 4 : 2;
  return raw_tile_bytes() / part + static_cast<std::int64_t>(2 * cuda::EncodeTables::most_header_bytes);
}

cuda::JpegEncoderLimits DeviceImage::encoder_limits(std::size_t tiles) const noexcept {
  cuda::JpegEncoderLimits limits;
  limits.tiles = static_cast<std::uint32_t>(tiles);
  limits.side = static_cast<std::uint32_t>(options.tile);
  limits.format = format;
  limits.subsampling = options.subsampling;
  limits.scratch_bytes =
      tiles * (static_cast<std::uint64_t>(encoded_tile_bytes()) + cuda::grid_of(limits).bands * band_bytes);
  return limits;
}

std::vector<DeviceImage> device_images(const Config& config, const Operators& operators) {
  std::vector<DeviceImage> images;
  // Copied tiles go with bands.
  if (config.image.compression == ImageCompression::copy) return images;
  for (std::size_t op = 0; op < operators.size(); ++op) {
    if (operators[op]->network() != nullptr) return {};
    const auto product = image_of(*operators[op]);
    if (!product) continue;
    if (product->format != luminance_format && product->format != rgb_format) return {};
    const ImageOptions options = image_options(config.image, product->format, product->labels);
    images.push_back({op, product->format, options, device_encodes(options)});
  }
  return images;
}

PyramidRows::PyramidRows(const PyramidLayout& layout, std::int64_t pixel_bytes, std::int64_t before,
                         std::int64_t after) {
  for (int level = 0; level < layout.levels(); ++level) {
    BatchLevel rows;
    rows.first_tile = published_rows(layout, level, before);
    rows.tile_rows = published_rows(layout, level, after) - rows.first_tile;
    rows.first = rows.first_tile * layout.tile();
    const std::int64_t known = layout.known_rows(level, after);
    // At the image's end a row of tiles is whole that isn't full.
    const std::int64_t end = std::min(known, (rows.first_tile + rows.tile_rows) * layout.tile());
    rows.kept = layout.known_rows(level, before) - rows.first;
    rows.count = known - rows.first;
    rows.left = known - end;
    rows.pitch = image_pitch(layout.size(level).width, pixel_bytes);
    rows.offset = bytes;
    bytes += aligned(rows.count * rows.pitch);
    levels.push_back(rows);
  }
  const BatchLevel& base = levels.front();
  for (std::int64_t row = base.first_tile; row < base.first_tile + base.tile_rows; ++row) {
    for (int level = 0; level < layout.levels(); ++level) {
      const std::int64_t first = row == 0 ? 0 : layout.completed_rows(level, row - 1);
      for (std::int64_t i = first; i < layout.completed_rows(level, row); ++i) published.push_back({level, i});
    }
  }
}

PyramidRoom::PyramidRoom(const DeviceImage& image, std::int64_t width, std::int64_t rows) {
  const std::int64_t tile = image.options.tile;
  const int levels = image.options.levels > 0 ? std::min(image.options.levels, cuda::BandReducer::most_levels)
                                              : cuda::BandReducer::most_levels;
  for (int level = 0; level < levels; ++level) {
    const std::int64_t columns = ((width - 1) >> level) + 1;
    const std::int64_t most = tile + (rows >> level) + 1;
    bytes += aligned(most * image_pitch(columns, image.pixel_bytes()));
    tiles += (columns + tile - 1) / tile * (most / tile + 1);
  }
}

KeptRows::KeptRows(const PyramidLayout& layout, std::int64_t pixel_bytes) {
  for (int level = 0; level < layout.levels(); ++level) {
    offsets.push_back(bytes);
    const Size size = layout.size(level);
    const std::int64_t rows = std::min<std::int64_t>(layout.tile(), size.height);
    bytes += aligned(rows * image_pitch(size.width, pixel_bytes));
  }
}

std::int64_t rows_at_a_time(const DeviceImage& image, const PyramidLayout& layout, std::int64_t bytes) {
  if (layout.levels() > cuda::BandReducer::most_levels) return 0;
  const std::int64_t left = bytes - KeptRows(layout, image.pixel_bytes()).bytes;
  for (std::int64_t rows = most_rows_at_a_time; rows >= least_rows_at_a_time; rows /= 2) {
    const auto sums = static_cast<std::int64_t>(cuda::BandReducer::memory_bytes(layout, image.format, rows));
    if (sums <= left) return rows;
  }
  return 0;
}

std::int64_t share_of(std::span<const DeviceImage> images, std::size_t index, std::int64_t bytes) {
  std::int64_t all = 0;
  for (const DeviceImage& image : images) all += image.pixel_bytes();
  return bytes / all * images[index].pixel_bytes() / alignment * alignment;
}

}  // namespace slidestream
