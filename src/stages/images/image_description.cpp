#include "stages/images/image_description.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <slidestream/pipeline.hpp>

#include "config/keys.hpp"
#include "config/toml_text.hpp"
#include "operators/common/tile_grid.hpp"
#include "sink/image_formats.hpp"
#include "sink/srgb_profile.hpp"
#include "slide/level_coding.hpp"

namespace slidestream {
namespace {

/// The settings that decide an operator's pixels, but for paths: those are nobody's business who gets the file. Of a
/// network those that are in effect, and what it is.
std::vector<std::pair<std::string, std::string>> settings_of(const Config& config, const Operator& op) {
  auto settings = settings_of_section(config, op.name());
  if (op.network() == nullptr) return settings;
  Config in_effect = config;
  in_effect.stitch.edge = edge_of(config.stitch.edge, op.network()->output());
  for (auto& setting : settings_of_section(in_effect, "stitch")) settings.push_back(std::move(setting));
  auto own = op.network()->settings();
  if (own.empty()) own.emplace_back("network", to_toml_value(op.network()->description()));
  for (auto& setting : own) {
    const auto same = std::ranges::find(settings, setting.first, &std::pair<std::string, std::string>::first);
    if (same == settings.end()) {
      settings.push_back(std::move(setting));
    } else {
      same->second = std::move(setting.second);
    }
  }
  return settings;
}

/// What JPEG and JPEG 2000 made of a level's pixels. Few slides have the latter without loss, and none says so.
std::optional<LossyCompression> lossy_of(const Slide& slide, std::size_t index) {
  const Level& level = slide.coded_level(index);
  const LevelCoding& coding = coding_of(slide, index);
  const Codec codec = level.codec == Codec::planes ? coding.plane_codec : level.codec;
  if (codec != Codec::jpeg && codec != Codec::jpeg2000) return std::nullopt;
  auto bytes = static_cast<double>(coding.coded_bytes);
  for (std::int64_t tile = 0; tile < level.columns * level.rows; ++tile) {
    if (level.codec != Codec::planes) bytes += static_cast<double>(slide.tile(index, tile).length);
  }
  const bool grey = level.colour == Colour::grey || level.colour == Colour::grey_inverted;
  const double pixels = static_cast<double>(level.columns * level.rows) *
                        static_cast<double>(level.tile_width * level.tile_height) * (grey ? 1.0 : 3.0);
  return LossyCompression{pixels / std::max(bytes, 1.0), codec == Codec::jpeg ? "ISO_10918_1" : "ISO_15444_1"};
}

}  // namespace

ImageDescription describe_image(const RunContext& context, const SlideRun& slide, const Operator& op,
                                const Product& product, const std::string& name, const NetworkPlan* network,
                                const SlideParameters* parameters) {
  const SlideInfo& info = slide.slide->info();
  const Level& level = slide.slide->coded_level(slide.level);
  ImageDescription description;
  description.name = name;
  description.size = {level.width, level.height};
  description.format = product.format;
  description.labels = product.labels;
  description.blank_label = product.blank_label;
  description.mpp = slide.result.mpp;
  // Levels may be smaller by other factors across and down, so that square pixels aren't there.
  const double down = info.downsample_y(slide.level);
  if (info.said_mpp_y) {
    description.mpp_y = *info.said_mpp_y * down;
  } else if (info.mpp && down != info.downsample_x(slide.level)) {
    description.mpp_y = *info.mpp * down;
  }
  if (info.magnification) description.magnification = *info.magnification / level.downsample;
  if (network != nullptr) {
    description.size = network->stitch.image;
    if (description.mpp) description.mpp = network->mpp(*description.mpp);
    if (description.mpp_y) description.mpp_y = network->mpp(*description.mpp_y);
    if (description.magnification) *description.magnification /= network->mpp(1.0);
  }
  if (product.format.channels == 1) description.channel_names = {product.name};
  description.settings = settings_of(context.config, op);
  if (parameters != nullptr) {
    for (const NamedValue& value : parameters->values()) {
      description.figures.emplace_back(value.name, to_toml_value(value.value));
    }
  }
  description.lossy = lossy_of(*slide.slide, slide.level);
  description.creator = std::string("slidestream ") + version();
  return description;
}

TileVectors describe_vectors(const SlideRun& slide, const NetworkPlan& network, const std::string& name) {
  const SlideInfo& info = slide.slide->info();
  TileVectors vectors;
  vectors.name = name;
  vectors.level0 = {info.levels.front().width, info.levels.front().height};
  vectors.level = slide.level;
  vectors.downsample = info.levels[slide.level].downsample;
  vectors.reduction = static_cast<double>(network.factor) / 65536.0;
  vectors.magnification = operators::level0_magnification(info);
  return vectors;
}

IccProfile profile_of_images(const RunContext& context, const SlideRun& slide) {
  const auto in_colour = [](const auto& op) {
    const auto product = image_of(*op);
    return product && product->format == rgb_format;
  };
  if (std::ranges::none_of(context.operators, in_colour)) return {};
  if (slide.slide->info().is_srgb) {
    const std::span<const std::byte> srgb = srgb_profile();
    return {.bytes = {srgb.begin(), srgb.end()}, .name = {}, .space = "RGB", .fault = {}};
  }
  IccProfile profile = slide.slide->icc_profile(slide.level);
  if (!profile.bytes.empty() && profile.space != "RGB") {
    profile = {.bytes = {}, .name = {}, .space = {}, .fault = "the ICC profile is for other colours than RGB"};
  }
  if (!profile.fault.empty() && context.on_message) {
    context.on_message(slide.path + ": " + profile.fault + ", and isn't kept");
  }
  return profile;
}

void warn_of_profile(const RunContext& context, const SlideRun& slide, const ImageDescription& description,
                     ImageFormat format) {
  if (format != ImageFormat::dzi || description.icc.size() <= most_dzi_profile || !context.on_message) return;
  context.on_message(slide.path + ": the ICC profile of " + std::to_string(description.icc.size()) +
                     " bytes isn't put into Deep Zoom tiles, which take up to " + std::to_string(most_dzi_profile) +
                     "; colours may look different");
}

}  // namespace slidestream
