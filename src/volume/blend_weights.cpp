#include "volume/blend_weights.hpp"

#include <algorithm>
#include <cstddef>
#include <slidestream/stitch.hpp>

namespace slidestream::volume {
namespace {

/// Neighbours i and i + 1 are blended from `begin` to before `end`, which may lie before it: they aren't then.
struct BlendRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Their overlap. Where fragments before or behind reach into it, blends of neighbours share what three fragments have
/// by halves, but for a sample in its middle. So a mirrored axis has mirrored blends.
BlendRange blend_of(const FragmentAxis& axis, std::int64_t i) {
  const auto begin = [&axis](std::int64_t of) { return std::max<std::int64_t>(axis.begin(of), 0); };
  const auto end = [&axis](std::int64_t of) { return std::min(axis.begin(of) + axis.fragment, axis.size); };
  BlendRange range = {begin(i + 1), end(i)};
  if (i > 0) range.begin = std::max(range.begin, (begin(i + 1) + end(i - 1) + 1) / 2);
  if (i + 2 < axis.count) range.end = std::min(range.end, (begin(i + 2) + end(i)) / 2);
  return range;
}

}  // namespace

std::vector<AxisWeights> weights_at(const FragmentAxis& axis, StitchWeights weights) {
  std::vector<AxisWeights> at(static_cast<std::size_t>(axis.size));
  std::int64_t sample = 0;
  for (std::int64_t i = 0; i + 1 < axis.count; ++i) {
    const BlendRange range = blend_of(axis, i);
    for (; sample < range.begin; ++sample) at[static_cast<std::size_t>(sample)] = {{i, 0}, {whole_weight, 0}, 1};
    const std::vector<std::uint16_t> ramp = stitch_ramp(weights, std::max<std::int64_t>(range.end - range.begin, 0));
    for (; sample < range.end; ++sample) {
      const std::uint32_t weight = ramp[static_cast<std::size_t>(sample - range.begin)];
      at[static_cast<std::size_t>(sample)] = {{i + 1, i}, {weight, whole_weight - weight}, 2};
    }
  }
  for (; sample < axis.size; ++sample) {
    at[static_cast<std::size_t>(sample)] = {{axis.count - 1, 0}, {whole_weight, 0}, 1};
  }
  return at;
}

}  // namespace slidestream::volume
