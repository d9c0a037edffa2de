#include "operators/tissue/preparation.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <slidestream/stitch.hpp>
#include <utility>

#include "image/block_means.hpp"
#include "operators/tissue/geojson.hpp"
#include "operators/tissue/tissue.hpp"

namespace slidestream::operators {
namespace {

TissueRule rule_of(const TissueConfig& config) {
  TissueRule rule;
  rule.method = config.method;
  rule.threshold = config.threshold;
  rule.least_um2 = config.min_um2;
  rule.filled_um2 = config.fill_um2 < 0.0 ? std::numeric_limits<double>::infinity() : config.fill_um2;
  rule.drops_ink = config.ink == TissueInk::drop;
  return rule;
}

HostPixels pixels_at(std::byte* data, std::int64_t width, std::int64_t height) {
  return {reinterpret_cast<std::uint8_t*>(data), width * 3, width, height, rgb_format};
}

/// Of the level that a small level is made of: what is read at a time.
std::int64_t band_rows(const Level& level, std::int64_t band_pixels) {
  return std::clamp<std::int64_t>(band_pixels / level.width, 1, std::min(level.tile_height, level.height));
}

}  // namespace

SmallImage read_small_level(const Slide& slide, const SmallLevel& small, BadTilePolicy on_bad_tile,
                            std::int64_t band_pixels) {
  SmallImage image;
  image.size = small.size;
  image.pixels.resize(static_cast<std::size_t>(small.size.width * small.size.height) * 3);
  if (small.halvings == 0 && small.factor == 65536) {
    read_rgb(slide, small.level, 0, 0, pixels_at(image.pixels.data(), small.size.width, small.size.height),
             on_bad_tile);
    return image;
  }
  const Level& level = slide.info().levels[small.level];
  const Size halved = BlockMeans::size_of({level.width, level.height}, small.halvings);
  BlockMeans means({level.width, level.height}, small.halvings);
  std::optional<AreaResampler> resampler;
  if (small.factor != 65536) resampler.emplace(halved, small.factor);
  const std::int64_t rows = band_rows(level, band_pixels);
  std::vector<std::byte> band(static_cast<std::size_t>(rows * level.width) * 3);
  std::vector<std::uint8_t> mean(static_cast<std::size_t>(halved.width) * 3);
  auto* to = reinterpret_cast<std::uint8_t*>(image.pixels.data());
  const std::uint8_t* const end_of_image = to + image.pixels.size();
  for (std::int64_t y = 0; y < level.height && to < end_of_image;) {
    // To the end of a row of tiles, so that none is decoded twice.
    const std::int64_t end = std::min((y / level.tile_height + 1) * level.tile_height, level.height);
    const HostPixels part = pixels_at(band.data(), level.width, std::min(rows, end - y));
    read_rgb(slide, small.level, 0, y, part, on_bad_tile);
    for (std::int64_t row = 0; row < part.height && to < end_of_image; ++row) {
      if (!means.add(mean.data(), part.data + row * part.pitch)) continue;
      if (!resampler) std::copy(mean.begin(), mean.end(), to);
      if (!resampler || resampler->add(to, mean.data())) to += image.size.width * 3;
    }
    y += part.height;
  }
  return image;
}

std::uint64_t preparation_bytes(const SlideInfo& info, const std::optional<double>& mpp) {
  constexpr std::uint64_t buffers = std::uint64_t{1} << 20;
  const SmallLevel small = choose_small_level(info, mpp);
  const Level& level = info.levels[small.level];
  const bool is_level = small.halvings == 0 && small.factor == 65536;
  const std::int64_t pixels = small.size.width * small.size.height;
  const std::int64_t band = is_level ? 0 : band_rows(level, max_small_level_pixels) * level.width;
  return buffers + static_cast<std::uint64_t>(std::max(10 * pixels, 3 * (pixels + band)));
}

Preparation::Preparation(const SlideContext& context, const Config& config, Admission admission)
    : slide_(context.slide),
      path_(context.path),
      mpp_(context.mpp),
      source_(config.tissue.source),
      rule_(rule_of(config.tissue)),
      on_bad_tile_(config.decode.on_bad_tile),
      small_(choose_small_level(context.slide.info(), context.mpp)),
      admission_(std::move(admission)) {}

Preparation& Preparation::of(const SlideContext& context, const Config& config) {
  if (context.common == nullptr) context.common = std::make_shared<Preparation>(context, config);
  return *context.common;
}

void Preparation::take_memory() {
  if (std::exchange(asked_, true) || !admission_.prepare) return;
  memory_ = admission_.prepare(preparation_bytes(slide_.info(), mpp_) + admission_.beside);
}

const SmallImage& Preparation::image() {
  take_memory();
  if (!image_) image_ = read_small_level(slide_, small_, on_bad_tile_);
  return *image_;
}

std::shared_ptr<const Mask> Preparation::mask() {
  if (mask_ != nullptr) return mask_;
  take_memory();
  const Level& finest = slide_.info().levels.front();
  const Size level0 = {finest.width, finest.height};
  if (source_ == TissueSource::geojson) {
    mask_ = std::make_shared<const Mask>(
        read_geojson_mask(outlines_beside(path_), small_.size, small_.scale, level0, &ignored_));
  } else {
    mask_ = std::make_shared<const Mask>(find_tissue(image().view(), small_.scale, level0, mpp_, rule_));
  }
  share_ = tissue_share(*mask_);
  return mask_;
}

std::shared_ptr<const Mask> prepare_mask(const SlideContext& context, const Config& config) {
  return Preparation::of(context, config).mask();
}

}  // namespace slidestream::operators
