#include "slide/likeness/place_judge.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

namespace slidestream {
namespace {

constexpr std::int64_t least_place_side = 8;    ///< pixels of the smaller level
constexpr int least_place_contrast = 8;         ///< of 255
constexpr int least_excess = 32;                ///< of 255: more than codecs add
constexpr std::int64_t least_unlike_part = 16;  ///< a sixteenth of a place's pixels
constexpr double most_mean_difference = 24.0;   ///< of 255, beside the larger level's deviation
constexpr double least_place_correlation = 0.6;

/// Whether a tile's bytes are those of its neighbour, too: white tiles, and those that aren't written yet.
bool is_shared(const Slide& slide, std::size_t level, std::int64_t tile) {
  const Level& of = slide.coded_level(level);
  const std::uint64_t offset = slide.tile(level, tile).offset;
  return (tile > 0 && slide.tile(level, tile - 1).offset == offset) ||
         (tile + 1 < of.columns * of.rows && slide.tile(level, tile + 1).offset == offset);
}

CoveredPixels pixels_within(const LevelPicture& picture, std::int64_t left, std::int64_t top, std::int64_t right,
                            std::int64_t bottom) {
  CoveredPixels found;
  std::uint32_t sum = 0;
  for (std::int64_t y = top; y < bottom; ++y) {
    const std::uint8_t* row = picture.pixels.data() + y * picture.width;
    for (std::int64_t x = left; x < right; ++x) {
      found.least = std::min(found.least, row[x]);
      found.most = std::max(found.most, row[x]);
      sum += row[x];
    }
  }
  found.mean = static_cast<float>(sum) / static_cast<float>((right - left) * (bottom - top));
  return found;
}

/// Whether the means are farther apart than those of all pixels and some of them are.
bool differs_in_mean(const LevelCell& cell, const CellSight& sight) {
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (const std::uint32_t value : sight.picture.pixels) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(sight.picture.pixels.size());
  const double mean = static_cast<double>(sum) / count;
  const double deviation = std::sqrt(std::max(0.0, static_cast<double>(squares) / count - mean * mean));
  const double of_small = cell.part->picture.mean(cell.left, cell.top, cell.left + cell.width, cell.top + cell.height);
  return std::abs(of_small - mean) > deviation + most_mean_difference;
}

/// The tile of the smaller level that a pixel lies in. \param parts  tiles that were read before. \param more  gets it,
/// unless it has it
const LevelPart& part_at(const ComparedLevels& levels, std::int64_t x, std::int64_t y,
                         const std::vector<LevelPart>& parts, std::deque<LevelPart>& more) {
  const std::int64_t left = x / levels.small.tile_width * levels.small.tile_width;
  const std::int64_t top = y / levels.small.tile_height * levels.small.tile_height;
  const auto is_it = [left, top](const LevelPart& part) { return part.left == left && part.top == top; };
  const auto known = std::ranges::find_if(parts, is_it);
  if (known != parts.end()) return *known;
  const auto read_before = std::ranges::find_if(more, is_it);
  if (read_before != more.end()) return *read_before;
  levels.budget.check();
  more.push_back(read_part(levels, left, top));
  return more.back();
}

}  // namespace

bool PlaceJudge::is_unlike(const LevelCell& cell, const CellSight& sight) {
  judged_.emplace_back(cell.level_left(), cell.level_top());
  if (!can_be_judged(cell) || is_unwritten(sight)) return false;
  const std::vector<CoveredPixels> covered = covered_by(cell, sight);
  if (!exceeds(cell, covered) && !differs_in_mean(cell, sight)) return false;
  const std::int64_t margin = levels_.plan.margin;
  for (std::int64_t y = -margin; y <= margin; ++y) {
    for (std::int64_t x = -margin; x <= margin; ++x) {
      if (correlates(cell, covered, x, y)) return false;
    }
  }
  return true;
}

bool PlaceJudge::has_unlike_place(const std::vector<LevelPart>& parts) {
  const CellGrid across(levels_.plan.cell_width, levels_.plan.factor_x);
  const CellGrid down(levels_.plan.cell_height, levels_.plan.factor_y);
  const std::int64_t along = levels_.plan.places_along;
  std::deque<LevelPart> more;
  for (std::int64_t i = 0; i < along * along; ++i) {
    const std::int64_t x = levels_.small.width * (2 * (i % along) + 1) / (2 * along);
    const std::int64_t y = levels_.small.height * (2 * (i / along) + 1) / (2 * along);
    const LevelPart& part = part_at(levels_, x, y, parts, more);
    const auto columns = across.around(x, part.left, part.left + part.picture.width);
    const auto rows = down.around(y, part.top, part.top + part.picture.height);
    const LevelCell cell{&part, columns.first - part.left, rows.first - part.top, columns.second - columns.first,
                         rows.second - rows.first};
    if (std::ranges::count(judged_, std::pair(columns.first, rows.first)) > 0 || !can_be_judged(cell)) continue;
    const std::optional<CellSight> sight = see(levels_, cell);
    if (sight && is_unlike(cell, *sight)) return true;
  }
  return false;
}

bool PlaceJudge::can_be_judged(const LevelCell& cell) {
  if (std::min(cell.width, cell.height) < least_place_side) return false;
  int least = 255;
  int most = 0;
  for (std::int64_t y = 0; y < cell.height; ++y) {
    for (std::int64_t x = 0; x < cell.width; ++x) {
      least = std::min(least, cell.pixel(x, y));
      most = std::max(most, cell.pixel(x, y));
    }
  }
  return most - least >= least_place_contrast;
}

bool PlaceJudge::is_unwritten(const CellSight& sight) const {
  const int zero = levels_.large.colour == Colour::grey_inverted ? 255 : 0;
  if (std::ranges::all_of(sight.picture.pixels, [zero](int value) { return value == zero; })) return true;
  const std::vector<std::int64_t> tiles =
      tiles_of(levels_.large, sight.columns.begin, sight.rows.begin, sight.picture.width, sight.picture.height);
  return std::ranges::any_of(tiles,
                             [this](std::int64_t tile) { return is_shared(levels_.slide, levels_.larger, tile); });
}

std::vector<CoveredPixels> PlaceJudge::covered_by(const LevelCell& cell, const CellSight& sight) const {
  const std::int64_t left = cell.level_left();
  const std::int64_t top = cell.level_top();
  std::vector<PixelRange> across;
  for (std::int64_t x = left; x < left + cell.width; ++x) {
    across.emplace_back(x, x + 1, levels_.plan.factor_x, levels_.large.width);
  }
  std::vector<CoveredPixels> covered;
  covered.reserve(static_cast<std::size_t>(cell.width * cell.height));
  for (std::int64_t y = top; y < top + cell.height; ++y) {
    const PixelRange down(y, y + 1, levels_.plan.factor_y, levels_.large.height);
    const std::int64_t bottom = std::min(down.end - sight.rows.begin, sight.picture.height);
    for (const PixelRange& range : across) {
      const std::int64_t right = std::min(range.end - sight.columns.begin, sight.picture.width);
      covered.push_back(pixels_within(sight.picture, range.begin - sight.columns.begin, down.begin - sight.rows.begin,
                                      right, bottom));
    }
  }
  return covered;
}

bool PlaceJudge::exceeds(const LevelCell& cell, const std::vector<CoveredPixels>& covered) const {
  const std::int64_t margin = levels_.plan.margin;
  std::int64_t outside = 0;
  for (std::int64_t y = margin; y < cell.height - margin; ++y) {
    for (std::int64_t x = margin; x < cell.width - margin; ++x) {
      int least = 255;
      int most = 0;
      for (std::int64_t row = y - margin; row <= y + margin; ++row) {
        for (std::int64_t column = x - margin; column <= x + margin; ++column) {
          const CoveredPixels& each = covered[static_cast<std::size_t>(row * cell.width + column)];
          least = std::min<int>(least, each.least);
          most = std::max<int>(most, each.most);
        }
      }
      const int excess = std::max(least_excess, (most - least) / 2);
      if (cell.pixel(x, y) < least - excess || cell.pixel(x, y) > most + excess) ++outside;
    }
  }
  return least_unlike_part * outside >= (cell.width - 2 * margin) * (cell.height - 2 * margin);
}

bool PlaceJudge::correlates(const LevelCell& cell, const std::vector<CoveredPixels>& covered, std::int64_t by_x,
                            std::int64_t by_y) const {
  const std::int64_t margin = levels_.plan.margin;
  double a = 0.0;
  double b = 0.0;
  double aa = 0.0;
  double bb = 0.0;
  double ab = 0.0;
  for (std::int64_t y = margin; y < cell.height - margin; ++y) {
    for (std::int64_t x = margin; x < cell.width - margin; ++x) {
      const double of_a = cell.pixel(x, y);
      const double of_b = covered[static_cast<std::size_t>((y + by_y) * cell.width + x + by_x)].mean;
      a += of_a;
      b += of_b;
      aa += of_a * of_a;
      bb += of_b * of_b;
      ab += of_a * of_b;
    }
  }
  const auto count = static_cast<double>((cell.width - 2 * margin) * (cell.height - 2 * margin));
  const double of_both = ab - a * b / count;
  const double variances = std::max(0.0, aa - a * a / count) * std::max(0.0, bb - b * b / count);
  return of_both > 0.0 && of_both >= least_place_correlation * std::sqrt(variances);
}

}  // namespace slidestream
