#include "stages/slide_images.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <slidestream/error.hpp>

#include "config/keys.hpp"
#include "config/toml_text.hpp"
#include "sink/content_hash.hpp"
#include "sink/partial_file.hpp"

namespace slidestream {
namespace {

TileCompression compression_of(ImageCompression wanted, const PixelFormat& format) {
  switch (wanted) {
    case ImageCompression::jpeg:
      return TileCompression::jpeg;
    case ImageCompression::none:
      return TileCompression::none;
    case ImageCompression::zstd:
      return TileCompression::zstd;
    case ImageCompression::automatic:
      break;
  }
  return can_encode(TileCompression::jpeg, format) ? TileCompression::jpeg : TileCompression::zstd;
}

/// The settings that decide an operator's pixels, but for paths: those are nobody's business who gets the file.
std::vector<std::pair<std::string, std::string>> settings_of(const Config& config, const std::string& op) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const ConfigKey& key : config_keys()) {
    if (key.section == op && key.full_name() != "stain.reference")
      settings.emplace_back(key.full_name(), to_toml_value(key.get(config)));
  }
  return settings;
}

ImageDescription describe(const RunContext& context, const SlideRun& slide, const Operator& op, const Product& product,
                          const std::string& name) {
  const SlideInfo& info = slide.slide->info();
  const Level& level = info.levels[slide.level];
  ImageDescription description;
  description.name = name;
  description.size = {level.width, level.height};
  description.format = product.format;
  description.mpp = slide.result.mpp;
  if (info.magnification) description.magnification = *info.magnification / level.downsample;
  if (product.format.channels == 1) description.channel_names = {product.name};
  description.settings = settings_of(context.config, op.name());
  return description;
}

/// Size and digest of a file that has its final name.
void measure(Artifact& artifact, const std::filesystem::path& file) {
  std::error_code error;
  artifact.bytes = std::filesystem::file_size(file, error);
  if (error) throw OutputError(file.string() + ": " + error.message());
  const auto digest = file_hash(file);
  if (!digest) throw OutputError(file.string() + ": can't be read again");
  artifact.digest = *digest;
}

constexpr const char* folder_name = "images";

}  // namespace

ImageOptions image_options(const Config& config, const PixelFormat& format) {
  constexpr int usual_tile = 256;
  ImageOptions options;
  options.compression = compression_of(config.image.compression, format);
  options.quality = config.image.quality;
  options.tile = config.image.tile == 0 ? usual_tile : config.image.tile;
  options.levels = config.image.levels;
  if (!can_encode(options.compression, format)) {
    throw ConfigError(
        "image.compression = \"jpeg\" holds 1 or 3 channels of 8 bits, and not every image of this run is "
        "such a one; use \"auto\", \"zstd\" or \"none\"");
  }
  return options;
}

void check_images(const Config& config, const Operators& operators) {
  for (const auto& op : operators) {
    const auto product = image_of(*op);
    if (!product) continue;
    if (config.image.format == ImageFormat::none) {
      throw ConfigError("image.format is \"none\", but the operator " + op->name() +
                        " makes an image; set image.format = \"ome-tiff\"");
    }
    image_options(config, product->format);
  }
}

SlideImages::SlideImages(const RunContext& context, const SlideRun& slide, const std::string& name)
    : folder_(std::filesystem::path(context.config.output.dir) / folder_name) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw OutputError(folder_.string() + ": " + error.message());
  std::size_t op = 0;
  for (std::size_t rank = 0; rank < context.all_operators.size(); ++rank) {
    const Operator& maker = *context.all_operators[rank];
    const SlideParameters* parameters = slide.parameters[rank].get();
    if (parameters != nullptr) {
      for (PreparedFile& file : parameters->files()) {
        prepared_.push_back({rank,
                             {maker.name(), file.product, std::string(folder_name) + "/" + name + file.suffix},
                             std::move(file.write)});
      }
    }
    if (!maker.reads_pixels()) continue;
    const auto product = image_of(maker);
    const std::size_t place = op++;
    if (!product) continue;
    const std::string file = name + "." + maker.name() + ".ome.tif";
    const ImageDescription description = describe(context, slide, maker, *product, name);
    const ImageOptions options = image_options(context.config, product->format);
    Image image;
    image.op = place;
    image.rank = rank;
    image.artifact = {maker.name(), product->name, std::string(folder_name) + "/" + file};
    image.builder = std::make_unique<PyramidBuilder>(PyramidLayout(description.size, options.tile, options.levels),
                                                     product->format, description.labels);
    image.sink = make_ome_tiff_sink(folder_ / file, description, options);
    images.push_back(std::move(image));
  }
}

void SlideImages::drop() noexcept {
  if (dropped_.exchange(true)) return;
  for (Image& image : images) image.sink->drop();
}

void SlideImages::publish() {
  std::vector<std::pair<std::size_t, Artifact>> made;
  for (Image& image : images) {
    const PublishedFile file = image.sink->publish();
    measure(image.artifact, file.path);
    made.emplace_back(image.rank, image.artifact);
  }
  for (Prepared& file : prepared_) {
    const std::filesystem::path path = folder_ / std::filesystem::path(file.artifact.file).filename();
    publish_whole(path, file.write);
    measure(file.artifact, path);
    made.emplace_back(file.rank, file.artifact);
  }
  std::ranges::stable_sort(made, {}, &std::pair<std::size_t, Artifact>::first);
  for (auto& [rank, artifact] : made) finished->result.artifacts.push_back(std::move(artifact));
}

void SlideImages::discard_empty() noexcept {
  for (Image& image : images) {
    if (image.sink->written() == 0) image.sink->discard();
  }
}

}  // namespace slidestream
