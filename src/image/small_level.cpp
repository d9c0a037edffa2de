#include "image/small_level.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <slidestream/stitch.hpp>
#include <stdexcept>

namespace slidestream {

namespace {

constexpr std::int64_t one = 65536;

/// \param factor  pixels of level 0 along one of the level
PixelWeights weights_along(std::int64_t level0, std::int64_t level, double factor) {
  const auto pixel = static_cast<std::int64_t>(factor);
  const std::int64_t last = level0 - (level - 1) * pixel;
  const bool is_whole = static_cast<double>(pixel) == factor && pixel <= BlockMeans::most_weight;
  return is_whole && last >= 1 && last < pixel ? PixelWeights{pixel, last} : PixelWeights{};
}

/// Sets size and scale by what it is made of.
void measure(SmallLevel& made, const SlideInfo& info) {
  const Level& level = info.levels[made.level];
  const Size halved = BlockMeans::size_of({level.width, level.height}, made.halvings);
  made.size = made.factor == one ? halved : AreaResampler::size_of(halved, made.factor);
  // The last pixel may reach over the slide's edge.
  const double pixel = std::ldexp(static_cast<double>(made.factor) / one, made.halvings);
  made.scale = {pixel * info.downsample_x(made.level), pixel * info.downsample_y(made.level)};
}

}  // namespace

LevelWeights weights_of_level(const SlideInfo& info, std::size_t level) {
  const Level& whole = info.levels.front();
  const Level& here = info.levels.at(level);
  return {weights_along(whole.width, here.width, info.downsample_x(level)),
          weights_along(whole.height, here.height, info.downsample_y(level))};
}

SmallLevel choose_reduction(const SlideInfo& info, double reduction, double tolerance) {
  if (info.levels.empty()) throw std::invalid_argument("a slide without levels");
  SmallLevel chosen;
  for (std::size_t i = 1; i < info.levels.size(); ++i) {
    const double downsample = info.downsample_x(i);
    if (downsample > info.downsample_x(chosen.level) && reduction / downsample >= 1.0 - tolerance) chosen.level = i;
  }
  const Level& level = info.levels[chosen.level];
  double rest = reduction / info.downsample_x(chosen.level);
  while (chosen.halvings < BlockMeans::most_halvings && rest / 2.0 >= 1.0 - tolerance &&
         std::min(level.width, level.height) >> (chosen.halvings + 1) > 0) {
    ++chosen.halvings;
    rest /= 2.0;
  }
  const Size halved = BlockMeans::size_of({level.width, level.height}, chosen.halvings);
  if (rest > 1.0 + tolerance && chosen.halvings < BlockMeans::most_halvings) {
    const auto most = static_cast<double>(one * std::min(halved.width, halved.height));
    chosen.factor = static_cast<std::int64_t>(std::clamp(std::rint(rest * one), static_cast<double>(one), most));
  }
  measure(chosen, info);
  return chosen;
}

SmallLevel choose_small_level(const SlideInfo& info, const std::optional<double>& mpp) {
  SmallLevel chosen = choose_reduction(info, mpp ? small_level_mpp / *mpp : small_level_reduction);
  while (chosen.size.width * chosen.size.height > max_small_level_pixels) {
    ++chosen.halvings;
    measure(chosen, info);
  }
  return chosen;
}

std::optional<SmallLevel> of_larger_level(const SlideInfo& info, const SmallLevel& small) {
  if (small.level == 0) return std::nullopt;
  // Far less than a pixel over the whole image.
  constexpr double tolerance = 2e-5;
  SlideInfo larger;
  larger.levels.assign(info.levels.begin(), info.levels.begin() + static_cast<std::ptrdiff_t>(small.level));
  return choose_reduction(larger, small.scale.x, tolerance);
}

}  // namespace slidestream
