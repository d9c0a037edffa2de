#include "sink/image_formats.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <slidestream/error.hpp>

namespace slidestream {

namespace {

/// More than any image has.
constexpr int most_levels = 32;

struct Traits {
  const char* name;
  const char* suffix;
  int tile;  ///< that its readers like best
  std::vector<TileCompression> compressions;
};

const Traits& traits_of(ImageFormat format) {
  using enum TileCompression;
  static const Traits ome_tiff = {"ome-tiff", ".ome.tif", 256, {jpeg, none, zstd, copy}};
  static const Traits ome_zarr = {"ome-zarr", ".ome.zarr", 1024, {blosc_lz4, none, zstd}};
  static const Traits dzi = {"dzi", ".dzi", 256, {jpeg}};
  return format == ImageFormat::dzi ? dzi : format == ImageFormat::ome_zarr ? ome_zarr : ome_tiff;
}

TileCompression compression_of(const ImageConfig& config, const PixelFormat& format) {
  switch (config.compression) {
    case ImageCompression::jpeg:
      return TileCompression::jpeg;
    case ImageCompression::none:
      return TileCompression::none;
    case ImageCompression::zstd:
      return TileCompression::zstd;
    case ImageCompression::blosc_lz4:
      return TileCompression::blosc_lz4;
    case ImageCompression::copy:
      return TileCompression::copy;
    case ImageCompression::automatic:
      break;
  }
  if (config.format == ImageFormat::dzi) return TileCompression::jpeg;
  if (config.format == ImageFormat::ome_zarr) {
    return config.zarr_version == 2 ? TileCompression::blosc_lz4 : TileCompression::zstd;
  }
  return can_encode(TileCompression::jpeg, format) ? TileCompression::jpeg : TileCompression::zstd;
}

}  // namespace

const char* image_suffix(ImageFormat format) noexcept { return traits_of(format).suffix; }

bool has_compression(ImageFormat format, TileCompression compression) noexcept {
  return std::ranges::count(traits_of(format).compressions, compression) > 0;
}

std::string compressions_of(ImageFormat format, const PixelFormat& pixels, bool with_auto) {
  std::vector<std::string> all;
  if (with_auto) all.emplace_back("auto");
  for (const TileCompression compression : traits_of(format).compressions) {
    // What is copied depends on the slide.
    if (compression == TileCompression::copy) continue;
    if (can_encode(compression, pixels)) all.emplace_back(name_of(compression));
  }
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) names += i + 1 < all.size() ? ", " : " or ";
    names += all[i];
  }
  return names;
}

ImageOptions image_options(const ImageConfig& config, const PixelFormat& pixels, bool labels) {
  // Labels are compressed as numbers of 16 bits are: never with loss.
  const PixelFormat format = labels ? PixelFormat{SampleType::uint16, 1} : pixels;
  ImageOptions options;
  options.format = config.format;
  options.compression = compression_of(config, format);
  options.quality = config.quality;
  options.tile = config.tile == 0 ? traits_of(config.format).tile : config.tile;
  options.levels = config.levels;
  options.zarr_version = config.zarr_version;
  if (config.format == ImageFormat::dzi) {
    if (config.levels != 0) throw ConfigError("image.levels must be 0 for dzi, whose levels go down to one pixel");
    options.levels = most_levels;
  }
  const std::string name = name_of(options.compression);
  if (!has_compression(config.format, options.compression)) {
    throw ConfigError("image.compression = \"" + name + "\" isn't in " + traits_of(config.format).name + "; use " +
                      compressions_of(config.format, format, true));
  }
  if (config.format == ImageFormat::dzi && !can_encode(options.compression, format)) {
    throw ConfigError(
        "image.format = \"dzi\" holds 1 or 3 channels of 8 bits, and not every image of this run is such a one; use "
        "ome-tiff or ome-zarr");
  }
  if (!can_encode(options.compression, format)) {
    throw ConfigError("image.compression = \"" + name +
                      "\" holds 1 or 3 channels of 8 bits, and not every image of this run is such a one; use " +
                      compressions_of(config.format, format, true));
  }
  return options;
}

std::vector<std::byte> blank_sample(const ImageDescription& description) {
  std::vector<std::byte> bytes(bytes_of(description.format.sample));
  if (description.labels) return bytes;
  std::ranges::fill(bytes, std::byte{0xFF});
  constexpr float white = 1.0F;
  if (description.format.sample == SampleType::float32) std::memcpy(bytes.data(), &white, sizeof white);
  return bytes;
}

std::unique_ptr<ImageSink> make_image_sink(const std::filesystem::path& file, const ImageDescription& description,
                                           const ImageOptions& options) {
  if (options.format == ImageFormat::dzi) return make_dzi_sink(file, description, options);
  if (options.format == ImageFormat::ome_zarr) return make_ome_zarr_sink(file, description, options);
  return make_ome_tiff_sink(file, description, options);
}

}  // namespace slidestream
