#include "slide/likeness/false_colours.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "slide/likeness/correlation.hpp"

namespace slidestream {
namespace {

constexpr std::size_t least_pairs = 32;
constexpr double least_spread = 10.0;       ///< of 255, of a sample that is compared
constexpr double least_level_spread = 1.5;  ///< of the same; below it the level's sample was clamped
constexpr double opposite = -0.4;
constexpr double unrelated = 0.3;
constexpr double related = 0.8;

constexpr std::ptrdiff_t parts_of_glass = 8;  ///< the brightest of them is glass, if it is bright and grey
constexpr double least_glass = 215.0;
constexpr double most_glass_tint = 16.0;      ///< of the larger level
constexpr double least_false_colour = 16.0;   ///< of the smaller one
constexpr double most_false_glass = 0.7;      ///< of the larger level's brightness
constexpr double most_false_contrast = 0.45;  ///< of the larger level's; one that is only darker has 0.6

/// Standard deviations.
MeanColour spread_of(const std::vector<ColourPair>& pairs, MeanColour ColourPair::*which) {
  const MeanColour mean = mean_of(pairs, which);
  MeanColour spread{};
  for (std::size_t i = 0; i < 3; ++i) {
    double squares = 0.0;
    for (const ColourPair& pair : pairs) squares += ((pair.*which)[i] - mean[i]) * ((pair.*which)[i] - mean[i]);
    spread[i] = std::sqrt(squares / static_cast<double>(pairs.size()));
  }
  return spread;
}

double sum_of(const MeanColour& colour) { return colour[0] + colour[1] + colour[2]; }

double colour_in(const MeanColour& colour) { return std::ranges::max(colour) - std::ranges::min(colour); }

/// One sample goes against the slide's; or with nothing of it where another goes with it, so that no noise explains it.
bool has_unrelated_sample(const std::vector<ColourPair>& pairs, const MeanColour& small, const MeanColour& large) {
  double least = 1.0;
  double most = -1.0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (large[i] < least_spread || small[i] < least_level_spread) continue;
    Correlation correlation;
    for (const ColourPair& pair : pairs) correlation.add(pair.small[i], pair.large[i]);
    least = std::min(least, correlation.coefficient());
    most = std::max(most, correlation.coefficient());
  }
  return least <= opposite || (least <= unrelated && most >= related);
}

bool has_false_glass(std::vector<ColourPair> pairs, const MeanColour& small, const MeanColour& large) {
  if (sum_of(small) >= most_false_contrast * sum_of(large)) return false;
  const std::ptrdiff_t count = std::max<std::ptrdiff_t>(1, std::ssize(pairs) / parts_of_glass);
  std::partial_sort(pairs.begin(), pairs.begin() + count, pairs.end(), [](const ColourPair& a, const ColourPair& b) {
    return std::ranges::min(a.large) > std::ranges::min(b.large);
  });
  pairs.resize(static_cast<std::size_t>(count));
  const MeanColour of_slide = mean_of(pairs, &ColourPair::large);
  const MeanColour of_level = mean_of(pairs, &ColourPair::small);
  return std::ranges::min(of_slide) >= least_glass && colour_in(of_slide) <= most_glass_tint &&
         colour_in(of_level) >= least_false_colour &&
         std::ranges::max(of_level) <= most_false_glass * std::ranges::max(of_slide);
}

}  // namespace

MeanColour mean_of(const std::vector<ColourPair>& pairs, MeanColour ColourPair::*which) {
  MeanColour mean{};
  for (const ColourPair& pair : pairs) {
    for (std::size_t i = 0; i < 3; ++i) mean[i] += (pair.*which)[i] / static_cast<double>(pairs.size());
  }
  return mean;
}

bool have_false_colours(const std::vector<ColourPair>& pairs) {
  if (pairs.size() < least_pairs) return false;
  const MeanColour small = spread_of(pairs, &ColourPair::small);
  const MeanColour large = spread_of(pairs, &ColourPair::large);
  return has_unrelated_sample(pairs, small, large) || has_false_glass(pairs, small, large);
}

}  // namespace slidestream
