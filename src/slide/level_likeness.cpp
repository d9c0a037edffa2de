#include "slide/level_likeness.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <slidestream/error.hpp>
#include <vector>

#include "slide/level_factor.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t most_compared_pixels = std::int64_t{1} << 23;  ///< of a level that is looked at whole
constexpr std::int64_t most_held_pixels = std::int64_t{1} << 25;      ///< of the parts of a level
constexpr std::int64_t most_cell_pixels = std::int64_t{1} << 24;      ///< of a cell in the larger level
constexpr std::int64_t most_tile_pixels = std::int64_t{1} << 24;
constexpr double largest_factor = 1024.0;
constexpr std::int64_t least_compared_pixels = 1024;
constexpr std::size_t most_cells = 6;
constexpr std::size_t most_tried_cells = 24;  ///< where tiles of the larger level are missing or bad
constexpr double least_cell_side = 4.0;       ///< pixels of the smaller level
constexpr std::int64_t most_parts = 8;        ///< tiles of a level that has the size of one
constexpr std::int64_t blocks_along = 8;
constexpr double least_correlation = 0.6;
constexpr double most_difference = 8.0;  ///< of 255

/// Luminance of a rectangle of a level.
struct Picture {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;

  double mean(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom) const {
    std::uint64_t sum = 0;
    for (std::int64_t y = top; y < bottom; ++y) {
      const auto row = pixels.begin() + y * width;
      sum = std::accumulate(row + left, row + right, sum);
    }
    return static_cast<double>(sum) / static_cast<double>((right - left) * (bottom - top));
  }
};

Picture read(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top, std::int64_t width,
             std::int64_t height, BadTilePolicy on_bad_tile) {
  Picture picture{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height))};
  read_luminance(slide, level, left, top, {picture.pixels.data(), width, width, height}, on_bad_tile);
  return picture;
}

/// The same, where all of it is there: no tile is missing or bad.
std::optional<Picture> read_whole(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top,
                                  std::int64_t width, std::int64_t height) {
  const Level& of = slide.coded_level(level);
  for (std::int64_t row = top / of.tile_height; row <= (top + height - 1) / of.tile_height; ++row) {
    for (std::int64_t column = left / of.tile_width; column <= (left + width - 1) / of.tile_width; ++column) {
      if (slide.tile(level, row * of.columns + column).length == 0) return std::nullopt;
    }
  }
  try {
    return read(slide, level, left, top, width, height, BadTilePolicy::fail);
  } catch (const StoppedError&) {
    throw;
  } catch (const StorageError&) {
    throw;
  } catch (const Error&) {
    return std::nullopt;
  }
}

struct Part;

/// A rectangle of a part.
struct Cell {
  const Part* part = nullptr;
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::uint64_t contrast = 0;
};

std::uint64_t contrast_of(const Picture& picture, const Cell& cell) {
  std::uint64_t sum = 0;
  for (std::int64_t y = cell.top; y < cell.top + cell.height; ++y) {
    for (std::int64_t x = cell.left; x < cell.left + cell.width; ++x) {
      const auto at = [&](std::int64_t i) { return static_cast<int>(picture.pixels[static_cast<std::size_t>(i)]); };
      const std::int64_t here = y * picture.width + x;
      if (x > 0) sum += static_cast<std::uint64_t>(std::abs(at(here) - at(here - 1)));
      if (y > 0) sum += static_cast<std::uint64_t>(std::abs(at(here) - at(here - picture.width)));
    }
  }
  return sum;
}

std::int64_t tile_pixels(const Level& level) { return level.tile_width * level.tile_height; }

/// A tile of the smaller level: cells lie in it.
struct Part {
  std::int64_t left = 0;
  std::int64_t top = 0;
  Picture picture;
};

/// All of the level's tiles, or `most` that are spread over it.
std::vector<Part> read_parts(const Slide& slide, std::size_t level, std::int64_t most, const OpenBudget& budget) {
  const Level& small = slide.coded_level(level);
  const std::int64_t tiles = small.columns * small.rows;
  const std::int64_t count = std::min(tiles, most);
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    budget.check();
    const std::int64_t tile = tiles * (2 * i + 1) / (2 * count);
    const std::int64_t left = tile % small.columns * small.tile_width;
    const std::int64_t top = tile / small.columns * small.tile_height;
    parts.push_back({left, top,
                     read(slide, level, left, top, std::min(small.tile_width, small.width - left),
                          std::min(small.tile_height, small.height - top), BadTilePolicy::white)});
  }
  return parts;
}

/// Side of a cell in the larger level: so many of its tiles that some pixels of the smaller one lie in them.
double cell_side(std::int64_t tile, double factor) {
  return static_cast<double>(tile) * std::ceil(least_cell_side * factor / static_cast<double>(tile));
}

/// Where cells of the larger level lie in the smaller, along an axis.
class CellGrid {
 public:
  CellGrid(std::int64_t tile, double factor) : side_(cell_side(tile, factor) / factor) {}

  /// The first pixel of the cell behind the one that a pixel lies in.
  std::int64_t next(std::int64_t pixel) const {
    const double cell = std::floor((static_cast<double>(pixel) + 0.5) / side_) + 1.0;
    return std::max(pixel + 1, static_cast<std::int64_t>(std::ceil(cell * side_ - 0.5)));
  }

 private:
  double side_;  ///< pixels of the smaller level
};

/// Those with the most contrast; where none has any, some that are spread over all.
std::vector<Cell> choose_cells(const std::vector<Part>& parts, const CellGrid& across, const CellGrid& down) {
  std::vector<Cell> cells;
  for (const Part& part : parts) {
    const std::int64_t right = part.left + part.picture.width;
    const std::int64_t bottom = part.top + part.picture.height;
    for (std::int64_t top = part.top; top < bottom; top = down.next(top)) {
      for (std::int64_t left = part.left; left < right; left = across.next(left)) {
        Cell cell{&part, left - part.left, top - part.top, std::min(across.next(left), right) - left,
                  std::min(down.next(top), bottom) - top};
        cell.contrast = contrast_of(part.picture, cell);
        cells.push_back(cell);
      }
    }
  }
  if (std::ranges::none_of(cells, [](const Cell& cell) { return cell.contrast > 0; })) {
    const std::size_t spread = std::min(most_cells, cells.size());
    for (std::size_t i = 0; i < spread; ++i) cells[i] = cells[cells.size() * (2 * i + 1) / (2 * spread)];
    cells.resize(spread);
    return cells;
  }
  const auto count = std::min(most_tried_cells, cells.size());
  std::partial_sort(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(count), cells.end(),
                    [](const Cell& a, const Cell& b) { return a.contrast > b.contrast; });
  cells.resize(count);
  return cells;
}

/// Means of the same places in both levels.
class Pairs {
 public:
  void add(double a, double b) {
    a_.push_back(a);
    b_.push_back(b);
  }

  std::size_t size() const noexcept { return a_.size(); }

  bool are_alike() const {
    const auto count = static_cast<double>(a_.size());
    const double mean_a = std::accumulate(a_.begin(), a_.end(), 0.0) / count;
    const double mean_b = std::accumulate(b_.begin(), b_.end(), 0.0) / count;
    double difference = 0.0;
    double of_a = 0.0;
    double of_b = 0.0;
    double of_both = 0.0;
    for (std::size_t i = 0; i < a_.size(); ++i) {
      difference += std::abs(a_[i] - b_[i]);
      of_a += (a_[i] - mean_a) * (a_[i] - mean_a);
      of_b += (b_[i] - mean_b) * (b_[i] - mean_b);
      of_both += (a_[i] - mean_a) * (b_[i] - mean_b);
    }
    if (difference <= most_difference * count) return true;
    return of_both > 0.0 && of_both >= least_correlation * std::sqrt(of_a * of_b);
  }

 private:
  std::vector<double> a_;
  std::vector<double> b_;
};

bool is_power_of_two(double factor) { return std::exp2(std::round(std::log2(factor))) == factor; }

/// A range of the smaller level's axis in the larger one's pixels, never empty.
struct Range {
  Range(std::int64_t first, std::int64_t last, double factor, std::int64_t size)
      : begin(std::clamp<std::int64_t>(std::llround(static_cast<double>(first) * factor), 0, size - 1)),
        end(std::clamp<std::int64_t>(std::llround(static_cast<double>(last) * factor), begin + 1, size)) {}
  std::int64_t begin;
  std::int64_t end;
};

/// What is looked at of two levels to compare them.
struct Comparison {
  Comparison(const Level& large, const Level& small)
      : factor_x(level_factor(large.width, small.width)), factor_y(level_factor(large.height, small.height)) {
    const std::int64_t pixels = small.width * small.height;
    is_tiny = pixels < least_compared_pixels || std::max(factor_x, factor_y) > largest_factor;
    has_huge_tiles = tile_pixels(small) > most_tile_pixels || tile_pixels(large) > most_tile_pixels;
    const bool is_sampled = pixels > most_compared_pixels || (is_power_of_two(factor_x) && is_power_of_two(factor_y));
    const std::int64_t sampled = std::clamp<std::int64_t>(most_held_pixels / tile_pixels(small), 1, most_parts);
    parts = is_sampled ? sampled : pixels;
  }

  double factor_x;
  double factor_y;
  bool is_tiny;
  bool has_huge_tiles;
  std::int64_t parts;  ///< tiles of the smaller one, at most
};

}  // namespace

std::uint64_t likeness_bytes(const Level& larger, const Level& level) noexcept {
  const Comparison comparison(larger, level);
  if (comparison.is_tiny || comparison.has_huge_tiles) return 0;
  const double tiles = static_cast<double>(std::min(comparison.parts, level.columns * level.rows));
  const double parts = std::min(tiles * static_cast<double>(tile_pixels(level)),
                                static_cast<double>(level.width) * static_cast<double>(level.height));
  // A pixel of the smaller level more along each axis, as its border lies within a tile of the larger one.
  const double cell = (cell_side(larger.tile_width, comparison.factor_x) + comparison.factor_x) *
                      (cell_side(larger.tile_height, comparison.factor_y) + comparison.factor_y);
  return static_cast<std::uint64_t>(parts + std::min(cell, static_cast<double>(most_cell_pixels)));
}

bool is_like_level(const Slide& slide, std::size_t larger, std::size_t level, const OpenBudget& budget) {
  const Level& large = slide.coded_level(larger);
  const Level& small = slide.coded_level(level);
  const Comparison comparison(large, small);
  if (comparison.is_tiny) return true;
  if (comparison.has_huge_tiles) return false;
  const double factor_x = comparison.factor_x;
  const double factor_y = comparison.factor_y;
  const std::vector<Part> parts = read_parts(slide, level, comparison.parts, budget);
  Pairs pairs;
  std::size_t compared = 0;
  const std::vector<Cell> cells = choose_cells(parts, {large.tile_width, factor_x}, {large.tile_height, factor_y});
  // Of one colour: it shows nothing but that.
  const bool is_plain = cells.empty() || cells.front().contrast == 0;
  for (const Cell& cell : cells) {
    if (cell.contrast == 0 && !is_plain) {
      if (compared == 0) return true;
      break;
    }
    if (compared == most_cells) break;
    const std::int64_t left = cell.part->left + cell.left;
    const std::int64_t top = cell.part->top + cell.top;
    const Range columns(left, left + cell.width, factor_x, large.width);
    const Range rows(top, top + cell.height, factor_y, large.height);
    // None of a slide is so large.
    if (columns.end - columns.begin > most_cell_pixels / (rows.end - rows.begin)) continue;
    budget.check();
    const std::optional<Picture> whole =
        read_whole(slide, larger, columns.begin, rows.begin, columns.end - columns.begin, rows.end - rows.begin);
    if (!whole) continue;
    const Picture& part = *whole;
    ++compared;
    const std::int64_t step_x = std::max<std::int64_t>(1, cell.width / blocks_along);
    const std::int64_t step_y = std::max<std::int64_t>(1, cell.height / blocks_along);
    for (std::int64_t y = 0; y + step_y <= cell.height; y += step_y) {
      for (std::int64_t x = 0; x + step_x <= cell.width; x += step_x) {
        const Range across(left + x, left + x + step_x, factor_x, large.width);
        const Range down(top + y, top + y + step_y, factor_y, large.height);
        const double of_small =
            cell.part->picture.mean(cell.left + x, cell.top + y, cell.left + x + step_x, cell.top + y + step_y);
        const double of_large =
            part.mean(across.begin - columns.begin, down.begin - rows.begin,
                      std::min(across.end - columns.begin, part.width), std::min(down.end - rows.begin, part.height));
        pairs.add(of_small, of_large);
      }
    }
  }
  return pairs.size() == 0 ? is_plain : pairs.are_alike();
}

}  // namespace slidestream
