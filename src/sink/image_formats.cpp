#include "sink/image_formats.hpp"

#include <algorithm>
#include <cstring>
#include <slidestream/error.hpp>

#include "config/keys.hpp"

namespace slidestream {

namespace {

/// More than any image has.
constexpr int most_levels = 32;

TileCompression compression_of(const ImageConfig& config, const PixelFormat& pixels) {
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
  return traits_of(config.format).compression(config, pixels);
}

}  // namespace

std::span<const ImageFormatTraits> image_formats() {
  static const std::vector<ImageFormatTraits> formats = {ome_tiff_traits(), ome_zarr_traits(), dzi_traits(),
                                                         dicom_traits()};
  return formats;
}

const ImageFormatTraits* format_named(std::string_view name) {
  const auto ends = [name](std::string_view suffix) { return name.ends_with(suffix); };
  const auto is_named = [&ends](const ImageFormatTraits& format) { return std::ranges::any_of(format.suffixes, ends); };
  const auto found = std::ranges::find_if(image_formats(), is_named);
  return found == image_formats().end() ? nullptr : &*found;
}

bool is_folder_of_image(std::string_view name) {
  if (const ImageFormatTraits* const format = format_named(name)) return format->is_folder;
  return std::ranges::any_of(
      image_formats(), [name](std::string_view tiles) { return !tiles.empty() && name.ends_with(tiles); },
      &ImageFormatTraits::tiles_folder);
}

const ImageFormatTraits& traits_of(ImageFormat format) {
  const std::span<const ImageFormatTraits> formats = image_formats();
  const auto found = std::ranges::find(formats, format, &ImageFormatTraits::format);
  return found == formats.end() ? formats.front() : *found;
}

const std::string& name_of(ImageFormat format) {
  return find_key("image", "format")->choices[static_cast<std::size_t>(format)];
}

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
  const ImageFormatTraits& traits = traits_of(config.format);
  options.format = config.format == ImageFormat::automatic ? traits.format : config.format;
  options.compression = compression_of(config, format);
  options.quality = config.quality;
  options.subsampling = config.subsampling;
  options.tile = config.tile == 0 ? traits.tile : config.tile;
  options.levels = config.levels;
  options.zarr_version = config.zarr_version;
  if (traits.goes_to_one_pixel) {
    if (config.levels != 0) {
      throw ConfigError("image.levels must be 0 for " + name_of(traits.format) + ", whose levels go down to one pixel");
    }
    options.levels = most_levels;
  }
  const std::string name = name_of(options.compression);
  if (!has_compression(config.format, options.compression)) {
    throw ConfigError("image.compression = \"" + name + "\" isn't in " + name_of(traits.format) + "; use " +
                      compressions_of(config.format, format, true));
  }
  const std::string why =
      labels ? "\" holds no labels, which JPEG would change, and an image of this run has labels; use "
             : "\" holds 1 or 3 channels of 8 bits, and not every image of this run is such a one; use ";
  if (traits.holds_8_bits && !can_encode(TileCompression::jpeg, format)) {
    throw ConfigError("image.format = \"" + name_of(traits.format) + why + "ome-tiff or ome-zarr");
  }
  if (!can_encode(options.compression, format)) {
    throw ConfigError("image.compression = \"" + name + why + compressions_of(config.format, format, true));
  }
  return options;
}

double blank_value(const ImageDescription& description) noexcept {
  if (description.labels) return description.blank_label;
  if (description.format.sample == SampleType::float32) return 1.0;
  return description.format.sample == SampleType::uint8 ? 255.0 : 65535.0;
}

std::vector<std::byte> blank_sample(const ImageDescription& description) {
  std::vector<std::byte> bytes(bytes_of(description.format.sample));
  const double value = blank_value(description);
  const auto whole = static_cast<std::uint16_t>(value);
  const auto real = static_cast<float>(value);
  std::memcpy(bytes.data(), description.format.sample == SampleType::float32 ? static_cast<const void*>(&real) : &whole,
              bytes.size());
  return bytes;
}

std::unique_ptr<ImageSink> make_image_sink(const std::filesystem::path& file, const ImageDescription& description,
                                           const ImageOptions& options) {
  return traits_of(options.format).make(file, description, options);
}

}  // namespace slidestream
