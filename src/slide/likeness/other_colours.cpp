#include "slide/likeness/other_colours.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "codec/tile_rule.hpp"

namespace slidestream {
namespace {

constexpr double least_difference = 5.0;  ///< of 255, a sample on average
constexpr double least_gain = 3.0;        ///< so many times less is what differs once colours are changed

/// Means of red, green and blue, or what stands in their place.
using MeanColour = std::array<double, 3>;

struct ColourPair {
  MeanColour small;
  MeanColour large;
};

struct MeanOfPlace {
  MeanColour colour{};
  bool is_plain = true;  ///< all pixels are equal
};

std::optional<MeanOfPlace> mean_of(const Slide& slide, std::size_t level, const PixelRange& columns,
                                   const PixelRange& rows) {
  return unless_bad([&] {
    std::vector<std::uint8_t> samples(static_cast<std::size_t>(3 * columns.size() * rows.size()));
    read_rgb(slide, level, columns.begin, rows.begin,
             {samples.data(), 3 * columns.size(), columns.size(), rows.size(), rgb_format});
    std::array<std::uint64_t, 3> sums{};
    MeanOfPlace mean;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      sums[i % 3] += samples[i];
      mean.is_plain = mean.is_plain && samples[i] == samples[i % 3];
    }
    const auto count = static_cast<double>(columns.size() * rows.size());
    for (std::size_t i = 0; i < 3; ++i) mean.colour[i] = static_cast<double>(sums[i]) / count;
    return mean;
  });
}

/// A third of a cell's rows: the pixels of the larger level take as many bytes as the luminance of all.
std::optional<ColourPair> colours_of(const ComparedLevels& levels, const LevelCell& cell) {
  const ComparisonPlan& plan = levels.plan;
  const std::int64_t left = cell.level_left();
  const std::int64_t right = left + cell.width;
  const std::int64_t height = std::max<std::int64_t>(1, cell.height / 3);
  const std::int64_t top = cell.level_top() + (cell.height - height) / 2;
  const std::int64_t bottom = top + height;
  levels.budget.check();
  const std::optional<MeanOfPlace> large =
      mean_of(levels.slide, levels.larger, {left, right, plan.factor_x, levels.large.width},
              {top, bottom, plan.factor_y, levels.large.height});
  if (!large || large->is_plain) return std::nullopt;
  const std::optional<MeanOfPlace> small = mean_of(levels.slide, levels.level, {left, right, 1.0, levels.small.width},
                                                   {top, bottom, 1.0, levels.small.height});
  if (!small) return std::nullopt;
  return ColourPair{small->colour, large->colour};
}

MeanColour to_grey(const MeanColour& rgb) {
  const double grey = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
  return {grey, grey, grey};
}

MeanColour to_ycbcr(const MeanColour& rgb) {
  const double luminance = to_grey(rgb)[0];
  return {luminance, 128.0 + (rgb[2] - luminance) / 1.772, 128.0 + (rgb[0] - luminance) / 1.402};
}

MeanColour from_ycbcr(const MeanColour& ycbcr) {
  const double blue = ycbcr[0] + 1.772 * (ycbcr[1] - 128.0);
  const double red = ycbcr[0] + 1.402 * (ycbcr[2] - 128.0);
  return {red, (ycbcr[0] - 0.299 * red - 0.114 * blue) / 0.587, blue};
}

/// What a pair's samples differ by beside what all three do.
double difference_of(const MeanColour& a, const MeanColour& b) {
  const double of_all = (a[0] + a[1] + a[2] - b[0] - b[1] - b[2]) / 3.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < 3; ++i) sum += std::abs(a[i] - b[i] - of_all);
  return sum / 3.0;
}

/// \param change  gives the pair as it would be if the levels had the same colours
template <class Change>
double mean_difference(const std::vector<ColourPair>& pairs, const Change& change) {
  double sum = 0.0;
  for (const ColourPair& pair : pairs) {
    const ColourPair changed = change(pair);
    sum += difference_of(changed.small, changed.large);
  }
  return sum / static_cast<double>(pairs.size());
}

double least_changed_difference(const std::vector<ColourPair>& pairs) {
  const auto grey_level = [](const ColourPair& of) { return ColourPair{of.small, to_grey(of.large)}; };
  const auto grey_slide = [](const ColourPair& of) { return ColourPair{to_grey(of.small), of.large}; };
  const auto ycbcr_level = [](const ColourPair& of) { return ColourPair{of.small, to_ycbcr(of.large)}; };
  const auto ycbcr_slide = [](const ColourPair& of) { return ColourPair{of.small, from_ycbcr(of.large)}; };
  // Twice: samples that were stretched each by itself are nearly grey.
  const double grey = 2.0 * std::min(mean_difference(pairs, grey_level), mean_difference(pairs, grey_slide));
  double least = std::min({grey, mean_difference(pairs, ycbcr_level), mean_difference(pairs, ycbcr_slide)});
  std::array<std::size_t, 3> order = {0, 1, 2};
  while (std::ranges::next_permutation(order).found) {
    least = std::min(least, mean_difference(pairs, [&order](const ColourPair& of) {
                       return ColourPair{of.small, {of.large[order[0]], of.large[order[1]], of.large[order[2]]}};
                     }));
  }
  return least;
}

}  // namespace

bool has_other_colours(const ComparedLevels& levels, const std::vector<const LevelCell*>& cells) {
  if (is_grey(levels.large.colour) && is_grey(levels.small.colour)) return false;
  std::vector<ColourPair> pairs;
  for (const LevelCell* cell : cells) {
    if (const std::optional<ColourPair> pair = colours_of(levels, *cell)) pairs.push_back(*pair);
  }
  if (pairs.empty()) return false;
  const double as_they_are = mean_difference(pairs, [](const ColourPair& pair) { return pair; });
  return as_they_are >= least_difference && as_they_are >= least_gain * least_changed_difference(pairs);
}

}  // namespace slidestream
