#include "slide/level_likeness.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <slidestream/error.hpp>
#include <utility>
#include <vector>

#include "slide/level_factor.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t most_read_pixels = std::int64_t{1} << 22;  ///< of the smaller level, and of the larger one
constexpr std::int64_t most_cell_pixels = std::int64_t{1} << 24;  ///< of a cell in the larger level
constexpr std::int64_t most_tile_pixels = std::int64_t{1} << 24;
constexpr double largest_factor = 1024.0;
constexpr std::int64_t least_compared_pixels = 1024;
constexpr std::int64_t most_places_along = 4;  ///< opening takes some hundredths of a second
constexpr std::size_t most_busy_cells = 6;
constexpr std::size_t most_tried_cells = 24;  ///< where tiles of the larger level are missing or bad
constexpr double least_cell_side = 8.0;       ///< pixels of the smaller level
constexpr std::int64_t blocks_along = 8;
constexpr std::int64_t least_block_side = 2;  ///< pixels of the smaller level: how far it may be displaced
constexpr double least_correlation = 0.6;
constexpr double most_difference = 8.0;         ///< of 255, on average
constexpr double most_local_difference = 12.0;  ///< of 255, in a cell or block
constexpr double most_deviations = 4.0;         ///< of the mean of as many pixels of the larger level
constexpr std::size_t least_unlike_part = 3;    ///< a third of a cell's blocks

/// Luminance of a rectangle of a level.
struct Picture {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;
};

/// A rectangle of a level where all of it is there: no tile is missing or bad.
std::optional<Picture> read_whole(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top,
                                  std::int64_t width, std::int64_t height) {
  const Level& of = slide.coded_level(level);
  for (std::int64_t row = top / of.tile_height; row <= (top + height - 1) / of.tile_height; ++row) {
    for (std::int64_t column = left / of.tile_width; column <= (left + width - 1) / of.tile_width; ++column) {
      if (slide.tile(level, row * of.columns + column).length == 0) return std::nullopt;
    }
  }
  try {
    Picture picture{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height))};
    read_luminance(slide, level, left, top, {picture.pixels.data(), width, width, height}, BadTilePolicy::fail);
    return picture;
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

/// Exact sums over the same place of both levels.
struct Block {
  std::uint64_t small = 0;
  std::uint64_t small_pixels = 0;
  std::uint64_t large = 0;
  std::uint64_t large_squares = 0;
  std::uint64_t large_pixels = 0;

  void add(const Block& other) {
    small += other.small;
    small_pixels += other.small_pixels;
    large += other.large;
    large_squares += other.large_squares;
    large_pixels += other.large_pixels;
  }
  double small_mean() const { return static_cast<double>(small) / static_cast<double>(small_pixels); }
  double large_mean() const { return static_cast<double>(large) / static_cast<double>(large_pixels); }
  double large_variance() const {
    const double mean = large_mean();
    return std::max(0.0, static_cast<double>(large_squares) / static_cast<double>(large_pixels) - mean * mean);
  }
};

/// Means of the same places in both levels.
class Pairs {
 public:
  void add(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      a_.push_back(block.small_mean());
      b_.push_back(block.large_mean());
    }
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

/// A range of the smaller level's axis in the larger one's pixels, never empty.
struct Range {
  Range(std::int64_t first, std::int64_t last, double factor, std::int64_t size)
      : begin(std::clamp<std::int64_t>(std::llround(static_cast<double>(first) * factor), 0, size - 1)),
        end(std::clamp<std::int64_t>(std::llround(static_cast<double>(last) * factor), begin + 1, size)) {}
  /// Within a picture that begins there.
  Range less(std::int64_t first) const {
    Range within = *this;
    within.begin -= first;
    within.end -= first;
    return within;
  }

  std::int64_t begin;
  std::int64_t end;
};

/// How many squares of so many pixels a side of a grid of them has, within the bound of what is read.
std::int64_t places_along(std::int64_t most_pixels, double pixels) {
  const double side = std::sqrt(static_cast<double>(most_pixels) / pixels);
  return static_cast<std::int64_t>(std::clamp(side, 1.0, static_cast<double>(most_places_along)));
}

/// JPEG 2000 takes some ten times as long as JPEG.
std::int64_t readable_pixels(const Level& level) {
  return level.codec == Codec::jpeg2000 ? most_read_pixels / 4 : most_read_pixels;
}

/// What is looked at of two levels to compare them.
struct Comparison {
  Comparison(const Level& large, const Level& small)
      : factor_x(level_factor(large.width, small.width)),
        factor_y(level_factor(large.height, small.height)),
        cell_width(cell_side(large.tile_width, factor_x)),
        cell_height(cell_side(large.tile_height, factor_y)) {
    const std::int64_t pixels = small.width * small.height;
    is_tiny = pixels < least_compared_pixels || std::max(factor_x, factor_y) > largest_factor;
    has_huge_tiles = tile_pixels(small) > most_tile_pixels || tile_pixels(large) > most_tile_pixels;
    is_whole = pixels <= readable_pixels(small) / 2;
    along = places_along(readable_pixels(large), cell_width * cell_height);
    if (!is_whole) {
      along = std::min(along, places_along(readable_pixels(small), static_cast<double>(tile_pixels(small))));
    }
  }

  double factor_x;
  double factor_y;
  double cell_width;  ///< pixels of the larger level
  double cell_height;
  bool is_tiny;
  bool has_huge_tiles;
  bool is_whole;       ///< all tiles of the smaller level are looked at
  std::int64_t along;  ///< places that are spread along each axis
};

/// Whether one of the places that are spread along an axis lies in a range of pixels.
bool has_place(std::int64_t size, std::int64_t along, std::int64_t first, std::int64_t last) {
  for (std::int64_t i = 0; i < along; ++i) {
    const std::int64_t place = size * (2 * i + 1) / (2 * along);
    if (first <= place && place < last) return true;
  }
  return false;
}

/// Numbers of the tiles along an axis that are looked at.
std::vector<std::int64_t> chosen_tiles(std::int64_t size, std::int64_t tile, const Comparison& comparison) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i * tile < size; ++i) {
    if (comparison.is_whole || has_place(size, comparison.along, i * tile, (i + 1) * tile)) chosen.push_back(i);
  }
  return chosen;
}

/// The tiles of the smaller level that are looked at, without missing and bad ones.
std::vector<Part> read_parts(const Slide& slide, std::size_t level, const Comparison& comparison,
                             const OpenBudget& budget) {
  const Level& small = slide.coded_level(level);
  std::vector<Part> parts;
  for (const std::int64_t row : chosen_tiles(small.height, small.tile_height, comparison)) {
    for (const std::int64_t column : chosen_tiles(small.width, small.tile_width, comparison)) {
      budget.check();
      const std::int64_t left = column * small.tile_width;
      const std::int64_t top = row * small.tile_height;
      std::optional<Picture> picture =
          read_whole(slide, level, left, top, std::min(small.tile_width, small.width - left),
                     std::min(small.tile_height, small.height - top));
      if (picture) parts.push_back({left, top, std::move(*picture)});
    }
  }
  return parts;
}

/// Cells of the parts, those with the most contrast first.
std::vector<Cell> find_cells(const std::vector<Part>& parts, const CellGrid& across, const CellGrid& down) {
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
  std::ranges::stable_sort(cells, [](const Cell& a, const Cell& b) { return a.contrast > b.contrast; });
  return cells;
}

/// The blocks of a cell.
class Blocks {
 public:
  Blocks(std::int64_t columns, std::int64_t rows) : columns_(columns), rows_(rows) {}

  void push_back(const Block& block) { blocks_.push_back(block); }
  const std::vector<Block>& all() const noexcept { return blocks_; }

  /// Whether the cell as a whole, or a third of its blocks, shows something else. Blocks at its border have no
  /// neighbours to be displaced to, and aren't judged.
  bool are_unlike() const {
    if (columns_ < 3 || rows_ < 3) return false;
    if (is_unlike(1, 1, columns_ - 2, rows_ - 2)) return true;
    std::size_t unlike = 0;
    for (std::int64_t y = 1; y < rows_ - 1; ++y) {
      for (std::int64_t x = 1; x < columns_ - 1; ++x) unlike += is_unlike(x, y, 1, 1) ? 1 : 0;
    }
    return unlike * least_unlike_part >= static_cast<std::size_t>((columns_ - 2) * (rows_ - 2));
  }

 private:
  Block window(std::int64_t left, std::int64_t top, std::int64_t width, std::int64_t height) const {
    Block sum;
    for (std::int64_t y = top; y < top + height; ++y) {
      for (std::int64_t x = left; x < left + width; ++x) sum.add(blocks_[static_cast<std::size_t>(y * columns_ + x)]);
    }
    return sum;
  }

  /// Whether the smaller level's mean lies outside those of the larger one there and a block beside it. A level of
  /// single pixels of the larger one has means that deviate by chance, by their number and the larger one's variance.
  bool is_unlike(std::int64_t left, std::int64_t top, std::int64_t width, std::int64_t height) const {
    const Block here = window(left, top, width, height);
    double low = here.large_mean();
    double high = low;
    double variance = 0.0;
    for (std::int64_t y = top - 1; y <= top + 1; ++y) {
      for (std::int64_t x = left - 1; x <= left + 1; ++x) {
        const Block beside = window(x, y, width, height);
        low = std::min(low, beside.large_mean());
        high = std::max(high, beside.large_mean());
        variance = std::max(variance, beside.large_variance());
      }
    }
    const double mean = here.small_mean();
    const double chance = most_deviations * std::sqrt(variance / static_cast<double>(here.small_pixels));
    return std::max(low - mean, mean - high) > most_local_difference + chance;
  }

  std::int64_t columns_;
  std::int64_t rows_;
  std::vector<Block> blocks_;
};

/// Whether one of the places that are spread over the level lies in a cell.
bool is_spread(const Cell& cell, const Level& small, std::int64_t along) {
  const std::int64_t left = cell.part->left + cell.left;
  const std::int64_t top = cell.part->top + cell.top;
  return has_place(small.width, along, left, left + cell.width) &&
         has_place(small.height, along, top, top + cell.height);
}

std::int64_t block_side(std::int64_t cell) { return std::max(std::min(least_block_side, cell), cell / blocks_along); }

/// Compares cells of one pair of levels.
class CellComparer {
 public:
  CellComparer(const Slide& slide, std::size_t larger, const Comparison& comparison, const OpenBudget& budget)
      : slide_(slide), larger_(larger), comparison_(comparison), budget_(budget) {}

  /// Nothing where the larger level isn't whole, or where the place is larger than any slide's.
  std::optional<Blocks> compare(const Cell& cell) const {
    const Level& large = slide_.coded_level(larger_);
    const std::int64_t left = cell.part->left + cell.left;
    const std::int64_t top = cell.part->top + cell.top;
    const Range columns(left, left + cell.width, comparison_.factor_x, large.width);
    const Range rows(top, top + cell.height, comparison_.factor_y, large.height);
    if (columns.end - columns.begin > most_cell_pixels / (rows.end - rows.begin)) return std::nullopt;
    budget_.check();
    const std::optional<Picture> picture =
        read_whole(slide_, larger_, columns.begin, rows.begin, columns.end - columns.begin, rows.end - rows.begin);
    if (!picture) return std::nullopt;
    const std::int64_t step_x = block_side(cell.width);
    const std::int64_t step_y = block_side(cell.height);
    Blocks blocks(cell.width / step_x, cell.height / step_y);
    for (std::int64_t y = 0; y + step_y <= cell.height; y += step_y) {
      const Range down(top + y, top + y + step_y, comparison_.factor_y, large.height);
      for (std::int64_t x = 0; x + step_x <= cell.width; x += step_x) {
        const Range across(left + x, left + x + step_x, comparison_.factor_x, large.width);
        Block block;
        sum_small(block, cell, x, y, step_x, step_y);
        sum_large(block, *picture, across.less(columns.begin), down.less(rows.begin));
        blocks.push_back(block);
      }
    }
    return blocks;
  }

 private:
  static void sum_small(Block& block, const Cell& cell, std::int64_t x, std::int64_t y, std::int64_t width,
                        std::int64_t height) {
    const Picture& picture = cell.part->picture;
    for (std::int64_t row = cell.top + y; row < cell.top + y + height; ++row) {
      const auto begin = picture.pixels.begin() + row * picture.width + cell.left + x;
      block.small = std::accumulate(begin, begin + width, block.small);
    }
    block.small_pixels = static_cast<std::uint64_t>(width * height);
  }

  static void sum_large(Block& block, const Picture& picture, const Range& across, const Range& down) {
    const std::int64_t right = std::min(across.end, picture.width);
    const std::int64_t bottom = std::min(down.end, picture.height);
    for (std::int64_t y = down.begin; y < bottom; ++y) {
      for (std::int64_t x = across.begin; x < right; ++x) {
        const std::uint64_t sample = picture.pixels[static_cast<std::size_t>(y * picture.width + x)];
        block.large += sample;
        block.large_squares += sample * sample;
      }
    }
    block.large_pixels = static_cast<std::uint64_t>((right - across.begin) * (bottom - down.begin));
  }

  const Slide& slide_;
  std::size_t larger_;
  const Comparison& comparison_;
  const OpenBudget& budget_;
};

}  // namespace

std::uint64_t likeness_bytes(const Level& larger, const Level& level) noexcept {
  const Comparison comparison(larger, level);
  if (comparison.is_tiny || comparison.has_huge_tiles) return 0;
  const double along = static_cast<double>(comparison.along);
  const double whole = static_cast<double>(level.width) * static_cast<double>(level.height);
  const double spread = along * along * static_cast<double>(tile_pixels(level));
  const double parts = comparison.is_whole ? whole : std::min(spread, whole);
  // A pixel of the smaller level more along each axis, as its border lies within a tile of the larger one.
  const double cell = (comparison.cell_width + comparison.factor_x) * (comparison.cell_height + comparison.factor_y);
  return static_cast<std::uint64_t>(parts + std::min(cell, static_cast<double>(most_cell_pixels)));
}

bool is_like_level(const Slide& slide, std::size_t larger, std::size_t level, const OpenBudget& budget) {
  const Level& large = slide.coded_level(larger);
  const Level& small = slide.coded_level(level);
  const Comparison comparison(large, small);
  if (comparison.is_tiny) return true;
  if (comparison.has_huge_tiles) return false;
  const std::vector<Part> parts = read_parts(slide, level, comparison, budget);
  const std::vector<Cell> cells =
      find_cells(parts, {large.tile_width, comparison.factor_x}, {large.tile_height, comparison.factor_y});
  // Of one colour: it shows nothing but that.
  const bool is_plain = cells.empty() || cells.front().contrast == 0;
  const CellComparer comparer(slide, larger, comparison, budget);
  Pairs pairs;
  std::size_t busy = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    const bool is_busy = cell.contrast > 0 && i < most_tried_cells && busy < most_busy_cells;
    if (!is_busy && !is_spread(cell, small, comparison.along)) continue;
    const std::optional<Blocks> blocks = comparer.compare(cell);
    if (!blocks) continue;
    if (blocks->are_unlike()) return false;
    if (is_busy) ++busy;
    if (is_busy || is_plain) pairs.add(blocks->all());
  }
  if (pairs.size() > 0) return pairs.are_alike();
  const bool has_plain_rest = cells.size() < most_tried_cells || cells[most_tried_cells - 1].contrast == 0;
  return is_plain || (has_plain_rest && cells.back().contrast == 0);
}

}  // namespace slidestream
