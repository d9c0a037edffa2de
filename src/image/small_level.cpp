#include "image/small_level.hpp"

#include <algorithm>
#include <stdexcept>

#include "image/pyramid_layout.hpp"

namespace slidestream {

SmallLevel choose_small_level(const SlideInfo& info, const std::optional<double>& mpp) {
  if (info.levels.empty()) throw std::invalid_argument("a slide without levels");
  SmallLevel chosen;
  double least = 0.0;
  for (std::size_t i = 0; i < info.levels.size(); ++i) {
    // The ratio orders levels as |log2(ratio)| does, without its rounding.
    const double ratio = mpp.value_or(assumed_mpp) * info.levels[i].downsample / small_level_mpp;
    const double distance = std::max(ratio, 1.0 / ratio);
    if (i > 0 && distance >= least) continue;
    least = distance;
    chosen.level = i;
  }
  const Level& level = info.levels[chosen.level];
  const Size whole{level.width, level.height};
  const PyramidLayout halved(whole, 1, 0);
  chosen.size = whole;
  while (chosen.size.width * chosen.size.height > max_small_level_pixels) {
    chosen.size = halved.size(++chosen.halvings);
  }
  const Level& finest = info.levels.front();
  const double factor = static_cast<double>(std::int64_t{1} << chosen.halvings);
  chosen.scale = {factor * static_cast<double>(finest.width) / static_cast<double>(level.width),
                  factor * static_cast<double>(finest.height) / static_cast<double>(level.height)};
  return chosen;
}

}  // namespace slidestream
