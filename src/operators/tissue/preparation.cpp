#include "operators/tissue/preparation.hpp"

#include <algorithm>
#include <cstdint>

#include "image/level_reducer.hpp"
#include "operators/tissue/geojson.hpp"
#include "operators/tissue/tissue.hpp"

namespace slidestream::operators {
namespace {

HostPixels pixels_at(std::byte* data, std::int64_t width, std::int64_t height) {
  return {reinterpret_cast<std::uint8_t*>(data), width * 3, width, height, rgb_format};
}

/// Keeps rows of the last level alone.
class LastLevel final : public LevelRows {
 public:
  LastLevel(SmallImage& image, int level, std::int64_t widest)
      : image_(image), level_(level), passing_(static_cast<std::size_t>(widest) * 3) {}

  std::byte* row(int level, std::int64_t y) override {
    return level == level_ ? image_.pixels.data() + y * image_.size.width * 3 : passing_.data();
  }

 private:
  SmallImage& image_;
  int level_;
  std::vector<std::byte> passing_;  ///< a row of a level between
};

}  // namespace

SmallImage read_small_level(const Slide& slide, const SmallLevel& small, BadTilePolicy on_bad_tile,
                            std::int64_t band_pixels) {
  SmallImage image;
  image.size = small.size;
  image.pixels.resize(static_cast<std::size_t>(small.size.width * small.size.height) * 3);
  if (small.halvings == 0) {
    read_rgb(slide, small.level, 0, 0, pixels_at(image.pixels.data(), small.size.width, small.size.height),
             on_bad_tile);
    return image;
  }
  const Level& level = slide.info().levels[small.level];
  const PyramidLayout layout({level.width, level.height}, 1, small.halvings + 1);
  LevelReducer reducer(layout, rgb_format, false, 0, level.width);
  LastLevel rows(image, small.halvings, layout.size(1).width);
  const std::int64_t band_rows =
      std::clamp<std::int64_t>(band_pixels / level.width, 1, std::min(level.tile_height, level.height));
  std::vector<std::byte> band(static_cast<std::size_t>(band_rows * level.width) * 3);
  for (std::int64_t y = 0; y < level.height;) {
    // To the end of a row of tiles, so that none is decoded twice.
    const std::int64_t end = std::min((y / level.tile_height + 1) * level.tile_height, level.height);
    const HostPixels part = pixels_at(band.data(), level.width, std::min(band_rows, end - y));
    read_rgb(slide, small.level, 0, y, part, on_bad_tile);
    reducer.add(band.data(), part.pitch, part.height, rows);
    y += part.height;
  }
  return image;
}

Preparation::Preparation(const SlideContext& context, const Config& config)
    : slide_(context.slide),
      path_(context.path),
      mpp_(context.mpp),
      source_(config.tissue.source),
      on_bad_tile_(config.decode.on_bad_tile),
      small_(choose_small_level(context.slide.info(), context.mpp)) {}

Preparation& Preparation::of(const SlideContext& context, const Config& config) {
  if (context.common == nullptr) context.common = std::make_shared<Preparation>(context, config);
  return *context.common;
}

const SmallImage& Preparation::image() {
  if (!image_) image_ = read_small_level(slide_, small_, on_bad_tile_);
  return *image_;
}

std::shared_ptr<const Mask> Preparation::mask() {
  if (mask_ != nullptr) return mask_;
  const Level& finest = slide_.info().levels.front();
  const Size level0 = {finest.width, finest.height};
  if (source_ == TissueSource::geojson) {
    std::filesystem::path file = path_;
    file.replace_extension(".geojson");
    mask_ = std::make_shared<const Mask>(read_geojson_mask(file, small_.size, small_.scale, level0));
  } else {
    mask_ = std::make_shared<const Mask>(find_tissue(image().view(), small_.scale, level0, mpp_));
  }
  return mask_;
}

std::shared_ptr<const Mask> prepare_mask(const SlideContext& context, const Config& config) {
  return Preparation::of(context, config).mask();
}

}  // namespace slidestream::operators
