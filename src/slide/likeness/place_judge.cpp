#include "slide/likeness/place_judge.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "slide/likeness/correlation.hpp"
#include "slide/likeness/single_pixels.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t least_place_side = 8;    ///< pixels of the smaller level
constexpr double least_place_deviation = 16.0;  ///< of 255
constexpr int least_excess = 32;                ///< of 255: more than codecs add
constexpr std::int64_t least_unlike_part = 16;  ///< a sixteenth of a place's pixels
constexpr double most_mean_difference = 24.0;   ///< of 255, beside the larger level's deviation
constexpr double least_place_correlation = 0.6;
constexpr std::int64_t most_reach = 8;  ///< pixels of the smaller level that a place may be displaced by

// Of strokes.
constexpr std::int64_t block_side = 8;     ///< pixels of the smaller level
constexpr int least_stroke_range = 64;     ///< of 255: more than codecs add
constexpr int most_range_gain = 2;         ///< times the larger level's range, beside that: sharpening and other gammas
constexpr std::int64_t least_strokes = 4;  ///< blocks: about two letters of small type

double deviation(std::uint64_t sum, std::uint64_t squares, double count) {
  const double mean = static_cast<double>(sum) / count;
  return std::sqrt(std::max(0.0, static_cast<double>(squares) / count - mean * mean));
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
  const double of_small = cell.part->picture.mean(cell.left, cell.top, cell.left + cell.width, cell.top + cell.height);
  return std::abs(of_small - mean) > deviation(sum, squares, count) + most_mean_difference;
}

/// Pixels around a block along an axis that must have one colour, too: levels may be displaced, and codecs blur edges.
std::int64_t surround_along(std::int64_t size, std::int64_t margin) {
  return std::max(margin, std::min(most_reach, size / 8));
}

/// How much the pixels of a block of the cell differ.
int range_of(const LevelCell& cell, std::int64_t left, std::int64_t top) {
  int least = 255;
  int most = 0;
  for (std::int64_t y = top; y < top + block_side; ++y) {
    for (std::int64_t x = left; x < left + block_side; ++x) {
      least = std::min(least, cell.pixel(x, y));
      most = std::max(most, cell.pixel(x, y));
    }
  }
  return most - least;
}

/// Whether a cell shows what lies so many of its pixels beside it in the larger level.
bool correlates(const LevelCell& cell, const std::vector<CoveredPixels>& covered, std::int64_t by_x,
                std::int64_t by_y) {
  Correlation correlation;
  for (std::int64_t y = std::max<std::int64_t>(0, -by_y); y < cell.height - std::max<std::int64_t>(0, by_y); ++y) {
    for (std::int64_t x = std::max<std::int64_t>(0, -by_x); x < cell.width - std::max<std::int64_t>(0, by_x); ++x) {
      correlation.add(cell.pixel(x, y), covered[static_cast<std::size_t>((y + by_y) * cell.width + x + by_x)].mean);
    }
  }
  return correlation.is_at_least(least_place_correlation);
}

/// Whether a cell's pixels are single ones of the larger level.
bool shows_single_pixels(const ComparedLevels& levels, const LevelCell& cell, const CellSight& sight) {
  Correlation correlation;
  for (const PixelPair& pair : closest_pixels(levels, cell, sight)) correlation.add(pair.small, pair.large);
  return correlation.is_at_least(least_place_correlation);
}

}  // namespace

bool PlaceJudge::is_unlike(const LevelCell& cell, const CellSight& sight) {
  judged_.emplace_back(cell.level_left(), cell.level_top());
  if (!is_large_enough(cell) || may_be_unwritten(levels_, sight.columns, sight.rows, sight.picture.pixels))
    return false;
  const std::vector<CoveredPixels> covered = covered_by(cell, sight);
  strokes_ += count_strokes(cell, covered);
  if (strokes_ >= least_strokes) return true;
  if (!can_be_judged(cell)) return false;
  if (!exceeds(cell, covered) && !differs_in_mean(cell, sight)) return false;
  return !shows_displaced(cell, covered) && !shows_single_pixels(levels_, cell, sight);
}

bool PlaceJudge::has_unlike_corner(const std::vector<LevelPart>& parts) {
  for (const bool at_bottom : {false, true}) {
    for (const bool at_right : {false, true}) {
      const LevelCorner corner{at_right, at_bottom};
      LevelPart own;
      const LevelPart& part = part_at(levels_, corner, parts, own);
      std::vector<LevelCell> cells = corner_cells(levels_, part, corner);
      std::erase_if(cells, [](const LevelCell& cell) { return !can_be_judged(cell); });
      if (cells.size() > most_corner_cells) cells.resize(most_corner_cells);
      for (const LevelCell& cell : cells) {
        if (std::ranges::count(judged_, std::pair(cell.level_left(), cell.level_top())) > 0) continue;
        const std::optional<CellSight> sight = see(levels_, cell);
        if (sight && is_unlike(cell, *sight)) return true;
      }
    }
  }
  return false;
}

bool PlaceJudge::is_large_enough(const LevelCell& cell) {
  return std::min(cell.width, cell.height) >= least_place_side;
}

bool PlaceJudge::can_be_judged(const LevelCell& cell) {
  if (!is_large_enough(cell)) return false;
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (std::int64_t y = 0; y < cell.height; ++y) {
    for (std::int64_t x = 0; x < cell.width; ++x) {
      const auto value = static_cast<std::uint64_t>(cell.pixel(x, y));
      sum += value;
      squares += value * value;
    }
  }
  return deviation(sum, squares, static_cast<double>(cell.width * cell.height)) >= least_place_deviation;
}

bool PlaceJudge::shows_displaced(const LevelCell& cell, const std::vector<CoveredPixels>& covered) const {
  const auto reach_along = [this](std::int64_t size) {
    return std::max(levels_.plan.margin, std::min(most_reach, size / 4));
  };
  if (correlates(cell, covered, 0, 0)) return true;
  const std::int64_t reach_x = reach_along(cell.width);
  const std::int64_t reach_y = reach_along(cell.height);
  for (std::int64_t y = -reach_y; y <= reach_y; ++y) {
    for (std::int64_t x = -reach_x; x <= reach_x; ++x) {
      if (correlates(cell, covered, x, y)) return true;
    }
  }
  return false;
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

std::int64_t PlaceJudge::count_strokes(const LevelCell& cell, const std::vector<CoveredPixels>& covered) const {
  const std::int64_t around_x = surround_along(cell.width, levels_.plan.margin);
  const std::int64_t around_y = surround_along(cell.height, levels_.plan.margin);
  const auto covered_range = [&](std::int64_t left, std::int64_t top) {
    int least = 255;
    int most = 0;
    for (std::int64_t y = top - around_y; y < top + block_side + around_y; ++y) {
      for (std::int64_t x = left - around_x; x < left + block_side + around_x; ++x) {
        const CoveredPixels& each = covered[static_cast<std::size_t>(y * cell.width + x)];
        least = std::min<int>(least, each.least);
        most = std::max<int>(most, each.most);
      }
    }
    return most - least;
  };
  std::int64_t strokes = 0;
  for (std::int64_t top = around_y; top + block_side + around_y <= cell.height; top += block_side) {
    for (std::int64_t left = around_x; left + block_side + around_x <= cell.width; left += block_side) {
      const int range = range_of(cell, left, top);
      if (range < least_stroke_range) continue;
      if (range >= least_stroke_range + most_range_gain * covered_range(left, top)) ++strokes;
    }
  }
  return strokes;
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

}  // namespace slidestream
