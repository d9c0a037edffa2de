#include "slide/likeness/other_colours.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "codec/tile_rule.hpp"
#include "slide/likeness/false_colours.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t samples_along = 8;
constexpr double least_difference = 5.0;  ///< of 255, a sample on average
constexpr double least_gain = 3.0;        ///< so many times less is what differs once colours are changed
constexpr double most_lacking = 12.0;     ///< of 255, a sample on average: dark levels and other gammas keep more
constexpr double least_lacked = 96.0;     ///< of the other level

// Of blocks that another order of red, green and blue would change clearly.
constexpr double least_change = 6.0;  ///< of 255, a sample on average
constexpr std::size_t least_coloured_blocks = 8;
constexpr double least_agreeing = 0.75;            ///< of these blocks
constexpr double least_turn = 0.7;                 ///< of the way to the colour in the other order; grey is halfway
constexpr double most_left = 1.0 / 3.0;            ///< of the squares of what differs, once the order is changed
constexpr std::ptrdiff_t parts_by_brightness = 8;  ///< the brightest of them is glass, or as near to it as can be

/// Colours of blocks.
struct BlockColours {
  std::vector<ColourPair> rgb;
  std::vector<ColourPair> decoded;  ///< of the same blocks, if RGB is read as YCbCr
};

MeanColour to_grey(const MeanColour& rgb) {
  const double grey = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
  return {grey, grey, grey};
}

/// Which sample stands at each place.
using Order = std::array<std::size_t, 3>;

MeanColour in_order(const MeanColour& colour, const Order& order) {
  return {colour[order[0]], colour[order[1]], colour[order[2]]};
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

/// RGB of a rectangle of a level.
struct ColourPicture {
  std::int64_t width = 0;
  std::vector<std::uint8_t> samples;

  /// How much the samples of pixels differ in some rows.
  std::int64_t saturation(std::int64_t top, std::int64_t bottom) const {
    std::int64_t sum = 0;
    for (std::int64_t i = 3 * top * width; i < 3 * bottom * width; i += 3) {
      const std::uint8_t* pixel = samples.data() + i;
      sum += std::max({pixel[0], pixel[1], pixel[2]}) - std::min({pixel[0], pixel[1], pixel[2]});
    }
    return sum;
  }

  bool is_plain() const { return std::equal(samples.begin() + 3, samples.end(), samples.begin()); }
  MeanColour mean(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom) const {
    std::array<std::uint64_t, 3> sums{};
    for (std::int64_t y = top; y < bottom; ++y) {
      const std::uint8_t* pixel = samples.data() + 3 * (y * width + left);
      for (std::int64_t x = left; x < right; ++x, pixel += 3) {
        for (std::size_t i = 0; i < 3; ++i) sums[i] += pixel[i];
      }
    }
    const auto count = static_cast<double>((right - left) * (bottom - top));
    MeanColour colour;
    for (std::size_t i = 0; i < 3; ++i) colour[i] = static_cast<double>(sums[i]) / count;
    return colour;
  }
};

std::optional<ColourPicture> read_colours(ColourTiles& colours, std::size_t level, const PixelRange& columns,
                                          const PixelRange& rows) {
  return unless_bad([&] { return ColourPicture{columns.size(), colours.read(level, columns, rows).samples}; });
}

/// The mean of a rectangle if each pixel's RGB is read as YCbCr and clamped, as decoders do. \param rgb_at  of a pixel
template <class Rgb>
MeanColour decoded_mean(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom,
                        const Rgb& rgb_at) {
  MeanColour mean{};
  for (std::int64_t y = top; y < bottom; ++y) {
    for (std::int64_t x = left; x < right; ++x) {
      const MeanColour decoded = from_ycbcr(rgb_at(x, y));
      for (std::size_t i = 0; i < 3; ++i) mean[i] += std::clamp(decoded[i], 0.0, 255.0);
    }
  }
  for (double& sample : mean) sample /= static_cast<double>((right - left) * (bottom - top));
  return mean;
}

/// Rows of the smaller level, and what they cover.
struct ColourRows {
  std::int64_t top = 0;
  std::int64_t height = 0;
  PixelRange columns;
  PixelRange rows;
  ColourPicture large;
};

/// Of the middle, the first and the last third of a cell's rows the one with the most colour. One where the larger
/// level has one colour is passed over. The pixels of the larger level take as many bytes as the luminance of all.
/// \param small  the cell
std::optional<ColourRows> rows_with_colour(const ComparedLevels& levels, const LevelCell& cell,
                                           const ColourPicture& small, ColourTiles& colours) {
  const ComparisonPlan& plan = levels.plan;
  const std::int64_t height = std::max<std::int64_t>(1, cell.height / 3);
  std::array<std::int64_t, 3> thirds = {(cell.height - height) / 2, 0, cell.height - height};
  const auto colour_of = [&](std::int64_t top) { return small.saturation(top, top + height); };
  std::ranges::stable_sort(thirds, [&](std::int64_t a, std::int64_t b) { return colour_of(a) > colour_of(b); });
  const PixelRange columns(cell.level_left(), cell.level_left() + cell.width, plan.factor_x, levels.large.width);
  for (const std::int64_t third : thirds) {
    const std::int64_t top = cell.level_top() + third;
    const PixelRange rows(top, top + height, plan.factor_y, levels.large.height);
    levels.budget.check();
    std::optional<ColourPicture> large = read_colours(colours, levels.larger, columns, rows);
    if (!large) return std::nullopt;
    if (!large->is_plain()) return ColourRows{top, height, columns, rows, std::move(*large)};
  }
  return std::nullopt;
}

/// Blocks of a third of a cell's rows.
BlockColours colours_of(const ComparedLevels& levels, const LevelCell& cell, ColourTiles& colours) {
  const ComparisonPlan& plan = levels.plan;
  const std::int64_t left = cell.level_left();
  const std::int64_t right = left + cell.width;
  const std::int64_t cell_top = cell.level_top();
  const std::optional<ColourPicture> small = read_colours(colours, levels.level, {left, right, 1.0, levels.small.width},
                                                          {cell_top, cell_top + cell.height, 1.0, levels.small.height});
  if (!small) return {};
  const std::optional<ColourRows> found = rows_with_colour(levels, cell, *small, colours);
  if (!found) return {};
  const std::int64_t top = found->top;
  const std::int64_t bottom = top + found->height;
  const auto small_mean = [&](std::int64_t x, std::int64_t y, std::int64_t end_x, std::int64_t end_y) {
    return small->mean(x - left, y - cell_top, end_x - left, end_y - cell_top);
  };
  const auto covered_mean = [&](std::int64_t x, std::int64_t y, std::int64_t end_x, std::int64_t end_y) {
    const PixelRange across(x, end_x, plan.factor_x, levels.large.width);
    const PixelRange down(y, end_y, plan.factor_y, levels.large.height);
    return found->large.mean(across.begin - found->columns.begin, down.begin - found->rows.begin,
                             std::min(across.end, found->columns.end) - found->columns.begin,
                             std::min(down.end, found->rows.end) - found->rows.begin);
  };
  const auto small_at = [&](std::int64_t x, std::int64_t y) { return small_mean(x, y, x + 1, y + 1); };
  const auto covered_at = [&](std::int64_t x, std::int64_t y) { return covered_mean(x, y, x + 1, y + 1); };
  BlockColours blocks;
  const std::int64_t step_x = std::max<std::int64_t>(1, cell.width / samples_along);
  const std::int64_t step_y = std::max<std::int64_t>(1, found->height / samples_along);
  for (std::int64_t y = top; y + step_y <= bottom; y += step_y) {
    const std::int64_t end_y = y + step_y;
    for (std::int64_t x = left; x + step_x <= right; x += step_x) {
      const std::int64_t end_x = x + step_x;
      blocks.rgb.push_back({small_mean(x, y, end_x, end_y), covered_mean(x, y, end_x, end_y)});
      blocks.decoded.push_back(
          {decoded_mean(x, y, end_x, end_y, small_at), decoded_mean(x, y, end_x, end_y, covered_at)});
    }
  }
  return blocks;
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
  Order order = {0, 1, 2};
  while (std::ranges::next_permutation(order).found) {
    least = std::min(least, mean_difference(pairs, [&order](const ColourPair& of) {
                       return ColourPair{of.small, in_order(of.large, order)};
                     }));
  }
  return least;
}

double difference_as_they_are(const std::vector<ColourPair>& pairs) {
  return mean_difference(pairs, [](const ColourPair& pair) { return pair; });
}

bool are_explained(double as_they_are, double changed) {
  return as_they_are >= least_difference && as_they_are >= least_gain * changed;
}

bool are_explained(const std::vector<ColourPair>& pairs) {
  return are_explained(difference_as_they_are(pairs), least_changed_difference(pairs));
}

/// Whether the RGB of one level is read as YCbCr.
bool are_misread(const BlockColours& blocks) {
  std::vector<ColourPair> level;
  std::vector<ColourPair> slide;
  for (std::size_t i = 0; i < blocks.rgb.size(); ++i) {
    level.push_back({blocks.rgb[i].small, blocks.decoded[i].large});
    slide.push_back({blocks.decoded[i].small, blocks.rgb[i].large});
  }
  return are_explained(difference_as_they_are(blocks.rgb),
                       std::min(difference_as_they_are(level), difference_as_they_are(slide)));
}

/// Pairs less the mean of the brightest ones: where the levels have another white, that is no difference.
std::vector<ColourPair> less_brightest(std::vector<ColourPair> pairs) {
  const auto count = std::max<std::ptrdiff_t>(1, std::ssize(pairs) / parts_by_brightness);
  std::partial_sort(pairs.begin(), pairs.begin() + count, pairs.end(),
                    [](const ColourPair& a, const ColourPair& b) { return to_grey(a.large)[0] > to_grey(b.large)[0]; });
  const std::vector<ColourPair> brightest(pairs.begin(), pairs.begin() + count);
  const ColourPair white = {mean_of(brightest, &ColourPair::small), mean_of(brightest, &ColourPair::large)};
  for (ColourPair& pair : pairs) {
    for (std::size_t i = 0; i < 3; ++i) {
      pair.small[i] -= white.small[i];
      pair.large[i] -= white.large[i];
    }
  }
  return pairs;
}

/// Blocks that an order would change clearly, and how the level's colours go with it.
class OrderVotes {
 public:
  void add(const ColourPair& pair, const Order& order) {
    const MeanColour ordered = in_order(pair.large, order);
    if (difference_of(ordered, pair.large) < least_change) return;
    double turned = 0.0;
    double whole = 0.0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double change = ordered[i] - pair.large[i];
      const double differs = pair.small[i] - pair.large[i];
      turned += differs * change;
      whole += change * change;
      as_they_are_ += differs * differs;
      changed_ += (differs - change) * (differs - change);
    }
    ++blocks_;
    if (2.0 * turned > whole) ++agreeing_;
    turned_ += turned;
    whole_ += whole;
  }

  /// What keeps the order of the three, as another brightness, contrast or gamma does, turns colours halfway at most.
  bool agree() const {
    return blocks_ >= least_coloured_blocks &&
           static_cast<double>(agreeing_) >= least_agreeing * static_cast<double>(blocks_) &&
           turned_ >= least_turn * whole_ && changed_ <= most_left * as_they_are_;
  }

 private:
  std::size_t blocks_ = 0;
  std::size_t agreeing_ = 0;
  double turned_ = 0.0;
  double whole_ = 0.0;
  double as_they_are_ = 0.0;  ///< squares of differences
  double changed_ = 0.0;
};

/// Whether the blocks with colours show these in another order, however few they are beside glass.
bool are_reordered(const std::vector<ColourPair>& blocks) {
  const std::vector<ColourPair> pairs = less_brightest(blocks);
  Order order = {0, 1, 2};
  while (std::ranges::next_permutation(order).found) {
    OrderVotes votes;
    for (const ColourPair& pair : pairs) votes.add(pair, order);
    if (votes.agree()) return true;
  }
  return false;
}

/// Whether one level has no red, green or blue where the other has. One that is dark in all three isn't told apart.
bool lack_colour(const std::vector<ColourPair>& pairs) {
  const MeanColour small = mean_of(pairs, &ColourPair::small);
  const MeanColour large = mean_of(pairs, &ColourPair::large);
  int lacking = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (std::min(small[i], large[i]) < most_lacking && std::max(small[i], large[i]) >= least_lacked) ++lacking;
  }
  return lacking > 0 && lacking < 3;
}

}  // namespace

bool has_other_colours(const ComparedLevels& levels, const std::vector<const LevelCell*>& cells, ColourTiles& colours) {
  if (is_grey(levels.large.colour) && is_grey(levels.small.colour)) return false;
  BlockColours blocks;
  std::vector<ColourPair> places;
  for (const LevelCell* cell : cells) {
    const BlockColours of_cell = colours_of(levels, *cell, colours);
    if (of_cell.rgb.empty()) continue;
    places.push_back({mean_of(of_cell.rgb, &ColourPair::small), mean_of(of_cell.rgb, &ColourPair::large)});
    blocks.rgb.insert(blocks.rgb.end(), of_cell.rgb.begin(), of_cell.rgb.end());
    blocks.decoded.insert(blocks.decoded.end(), of_cell.decoded.begin(), of_cell.decoded.end());
  }
  if (places.empty()) return false;
  // Blocks show colours that places have little of; places those of levels that are made of single pixels.
  return are_explained(blocks.rgb) || are_explained(places) || are_misread(blocks) || lack_colour(blocks.rgb) ||
         are_reordered(blocks.rgb) || have_false_colours(blocks.rgb);
}

}  // namespace slidestream
