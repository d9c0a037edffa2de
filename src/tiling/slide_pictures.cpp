#include "tiling/slide_pictures.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <string>

#include "operators/tissue/preparation.hpp"

namespace slidestream {

std::shared_ptr<const Mask> tissue_of(const Slide& slide, BadTilePolicy on_bad_tile) {
  Config config;
  config.decode.on_bad_tile = on_bad_tile;
  return operators::prepare_mask({slide, 0, slide.info().path, slide.info().mean_mpp()}, config);
}

Picture thumbnail(RegionReader& reader, const Slide& slide, const Size& most, BadTilePolicy on_bad_tile,
                  const std::function<void()>& between) {
  const std::vector<Level>& levels = slide.info().levels;
  const auto refuse = [&](const std::string& expected) {
    throw ConfigError("size is (" + std::to_string(most.width) + ", " + std::to_string(most.height) + "); expected " +
                      expected);
  };
  constexpr std::int64_t longest = 32768;
  if (most.width < 1 || most.height < 1 || most.width > longest || most.height > longest) {
    refuse("1 x 1 to 32768 x 32768 pixels");
  }
  // The side that fills the box decides. Rounded down, so that this side is filled whole.
  const auto factor_of = [&](const Level& level) {
    return std::max(level.width * 65536 / most.width, level.height * 65536 / most.height);
  };
  Resolution resolution;
  for (std::size_t i = 1; i < levels.size(); ++i) {
    if (factor_of(levels[i]) >= 65536) resolution.level = i;
  }
  const Level& level = levels[resolution.level];
  resolution.factor = std::max<std::int64_t>(factor_of(level), 65536);
  Picture picture;
  picture.size = resolution.size_of(level);
  const Size& size = picture.size;
  if (resolution.factor > 256 * 65536 || size.width < 1 || size.height < 1) {
    refuse("a larger one: this slide of " + std::to_string(level.width) + " x " + std::to_string(level.height) +
           " pixels is reduced by at most 256, and to at least 1 x 1");
  }
  picture.pixels.resize(static_cast<std::size_t>(size.width * size.height * 3));
  reader.read(slide, resolution, 0, 0, {picture.pixels.data(), size.width * 3, size.width, size.height, rgb_format},
              255, on_bad_tile, between);
  return picture;
}

}  // namespace slidestream
