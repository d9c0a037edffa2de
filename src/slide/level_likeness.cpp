#include "slide/level_likeness.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <numeric>
#include <optional>
#include <slidestream/error.hpp>
#include <utility>
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

// Of single places.
constexpr std::int64_t most_place_pixels = std::int64_t{5}
                                           << 20;  ///< to read; opening takes some hundredths of a second
constexpr std::int64_t most_slow_place_pixels = std::int64_t{5} << 18;  ///< of JPEG 2000
constexpr std::int64_t most_places_along = 4;
constexpr std::int64_t least_places_along = 3;
constexpr std::int64_t least_place_side = 8;  ///< pixels of the smaller level
constexpr int least_place_contrast = 8;       ///< of 255
constexpr double least_place_factor = 1.5;
constexpr double most_displaced = 2.0;          ///< pixels of the smaller level
constexpr int least_excess = 32;                ///< of 255: more than codecs add
constexpr std::int64_t least_unlike_part = 16;  ///< a sixteenth of a place's pixels
constexpr double most_mean_difference = 24.0;   ///< of 255, beside the larger level's deviation

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

/// Tiles of a level that a rectangle lies in.
std::vector<std::int64_t> tiles_of(const Level& of, std::int64_t left, std::int64_t top, std::int64_t width,
                                   std::int64_t height) {
  std::vector<std::int64_t> tiles;
  for (std::int64_t row = top / of.tile_height; row <= (top + height - 1) / of.tile_height; ++row) {
    for (std::int64_t column = left / of.tile_width; column <= (left + width - 1) / of.tile_width; ++column) {
      tiles.push_back(row * of.columns + column);
    }
  }
  return tiles;
}

/// What `reading` gives; nothing where a tile is bad.
template <class Reading>
auto unless_bad(const Reading& reading) -> std::optional<decltype(reading())> {
  try {
    return reading();
  } catch (const StoppedError&) {
    throw;
  } catch (const StorageError&) {
    throw;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The same, where all of it is there: no tile is missing or bad.
std::optional<Picture> read_whole(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top,
                                  std::int64_t width, std::int64_t height) {
  for (const std::int64_t tile : tiles_of(slide.coded_level(level), left, top, width, height)) {
    if (slide.tile(level, tile).length == 0) return std::nullopt;
  }
  return unless_bad([&] { return read(slide, level, left, top, width, height, BadTilePolicy::fail); });
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

/// The tile that begins at a pixel.
Part read_part(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top) {
  const Level& small = slide.coded_level(level);
  return {left, top,
          read(slide, level, left, top, std::min(small.tile_width, small.width - left),
               std::min(small.tile_height, small.height - top), BadTilePolicy::white)};
}

/// All of the level's tiles, or `most` that are spread over it.
std::vector<Part> read_parts(const Slide& slide, std::size_t level, std::int64_t most, const OpenBudget& budget) {
  const Level& small = slide.coded_level(level);
  const std::int64_t tiles = small.columns * small.rows;
  const std::int64_t count = std::min(tiles, most);
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    budget.check();
    const std::int64_t tile = tiles * (2 * i + 1) / (2 * count);
    parts.push_back(
        read_part(slide, level, tile % small.columns * small.tile_width, tile / small.columns * small.tile_height));
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

  /// The first pixel of the cell that a pixel lies in, and the one behind its last, both within `begin` to `end`.
  std::pair<std::int64_t, std::int64_t> around(std::int64_t pixel, std::int64_t begin, std::int64_t end) const {
    std::int64_t last = std::min(next(begin), end);
    while (last <= pixel) {
      begin = last;
      last = std::min(next(begin), end);
    }
    return {begin, last};
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
    const double misfit = std::max(misfit_of(large.width, small.width), misfit_of(large.height, small.height));
    margin = factor_x == std::round(factor_x) && factor_y == std::round(factor_y) ? 1 : 2;
    if (pixels > most_compared_pixels || misfit > most_displaced) return;
    if (std::min(factor_x, factor_y) < least_place_factor || std::max(factor_x, factor_y) > largest_factor) return;
    const double pixels_of_place = cell_side(large.tile_width, factor_x) * cell_side(large.tile_height, factor_y) +
                                   static_cast<double>(tile_pixels(small));
    const bool is_slow = large.codec == Codec::jpeg2000 || small.codec == Codec::jpeg2000;
    const auto most = static_cast<double>(is_slow ? most_slow_place_pixels : most_place_pixels);
    for (std::int64_t along = most_places_along; along >= least_places_along && places_along == 0; --along) {
      if (static_cast<double>(along * along) * pixels_of_place <= most) places_along = along;
    }
  }

  /// Pixels of the smaller level that places may be displaced by as the sizes don't fit.
  static double misfit_of(std::int64_t larger, std::int64_t smaller) {
    const double factor = static_cast<double>(larger) / static_cast<double>(smaller);
    return std::abs(factor - std::round(factor)) * static_cast<double>(smaller) / factor;
  }

  double factor_x;
  double factor_y;
  bool is_tiny;
  bool has_huge_tiles;
  std::int64_t parts;             ///< tiles of the smaller one, at most
  std::int64_t places_along = 0;  ///< that are compared one by one, spread along each axis; 0: none
  std::int64_t margin;            ///< pixels of the smaller one that a place may be displaced by
};

/// What is seen of the larger level where a cell of the smaller one lies.
struct Sight {
  Range columns;
  Range rows;
  Picture picture;
};

/// Whether a tile's bytes are those of its neighbour, too: white tiles, and those that aren't written yet.
bool is_shared(const Slide& slide, std::size_t level, std::int64_t tile) {
  const Level& of = slide.coded_level(level);
  const std::uint64_t offset = slide.tile(level, tile).offset;
  return (tile > 0 && slide.tile(level, tile - 1).offset == offset) ||
         (tile + 1 < of.columns * of.rows && slide.tile(level, tile + 1).offset == offset);
}

/// What a pixel of the smaller level covers in the larger one.
struct Footprint {
  std::uint8_t least = 255;
  std::uint8_t most = 0;
  float mean = 0.0F;
};

/// Compares levels place by place.
class PlaceComparer {
 public:
  PlaceComparer(const Slide& slide, std::size_t larger, std::size_t level, const Comparison& comparison,
                const OpenBudget& budget)
      : slide_(slide),
        larger_(larger),
        level_(level),
        large_(slide.coded_level(larger)),
        small_(slide.coded_level(level)),
        comparison_(comparison),
        budget_(budget) {}

  /// What the larger level has there; nothing where it isn't whole.
  std::optional<Sight> see(const Cell& cell) const {
    const std::int64_t left = cell.part->left + cell.left;
    const std::int64_t top = cell.part->top + cell.top;
    const Range columns(left, left + cell.width, comparison_.factor_x, large_.width);
    const Range rows(top, top + cell.height, comparison_.factor_y, large_.height);
    // None of a slide is so large.
    if (columns.end - columns.begin > most_cell_pixels / (rows.end - rows.begin)) return std::nullopt;
    budget_.check();
    std::optional<Picture> picture =
        read_whole(slide_, larger_, columns.begin, rows.begin, columns.end - columns.begin, rows.end - rows.begin);
    if (!picture) return std::nullopt;
    return Sight{columns, rows, std::move(*picture)};
  }

  /// Whether a cell can't have been made of what the larger level has there. It can, wherever its pixels lie between
  /// the least and the most that they and their neighbours cover, however it was reduced, displaced or blurred.
  /// Sharpening and codecs exceed that by some grey levels, and along edges that both levels have.
  bool is_unlike(const Cell& cell, const Sight& sight) {
    judged_.emplace_back(cell.part->left + cell.left, cell.part->top + cell.top);
    if (!can_be_judged(cell) || is_unwritten(sight)) return false;
    const std::vector<Footprint> covered = footprints(cell, sight);
    if (!exceeds(cell, covered) && !differs_in_mean(cell, sight)) return false;
    for (std::int64_t y = -comparison_.margin; y <= comparison_.margin; ++y) {
      for (std::int64_t x = -comparison_.margin; x <= comparison_.margin; ++x) {
        if (correlates(cell, covered, x, y)) return false;
      }
    }
    return true;
  }

  /// Whether one of the places that are spread over the level, and not judged yet, is unlike. \param parts  tiles of
  /// the smaller level that were read
  bool has_unlike_place(const std::vector<Part>& parts) {
    const CellGrid across(large_.tile_width, comparison_.factor_x);
    const CellGrid down(large_.tile_height, comparison_.factor_y);
    const std::int64_t along = comparison_.places_along;
    std::deque<Part> more;
    for (std::int64_t i = 0; i < along * along; ++i) {
      const std::int64_t x = small_.width * (2 * (i % along) + 1) / (2 * along);
      const std::int64_t y = small_.height * (2 * (i / along) + 1) / (2 * along);
      const Part& part = part_at(x, y, parts, more);
      const auto columns = across.around(x, part.left, part.left + part.picture.width);
      const auto rows = down.around(y, part.top, part.top + part.picture.height);
      const Cell cell{&part, columns.first - part.left, rows.first - part.top, columns.second - columns.first,
                      rows.second - rows.first};
      if (std::ranges::count(judged_, std::pair(columns.first, rows.first)) > 0 || !can_be_judged(cell)) continue;
      const std::optional<Sight> sight = see(cell);
      if (sight && is_unlike(cell, *sight)) return true;
    }
    return false;
  }

  /// Whether a cell has the colours of the larger level with red and blue exchanged. Looks at a third of it.
  bool has_swapped_colours(const Cell& cell) const {
    if (is_grey(large_) || is_grey(small_)) return false;
    const std::int64_t left = cell.part->left + cell.left;
    const std::int64_t height = std::max<std::int64_t>(1, cell.height / 3);
    const std::int64_t top = cell.part->top + cell.top + (cell.height - height) / 2;
    const Range columns(left, left + cell.width, comparison_.factor_x, large_.width);
    const Range rows(top, top + height, comparison_.factor_y, large_.height);
    budget_.check();
    const std::optional<Pixels> of_small =
        read_colours(level_, {left, left + cell.width, 1.0, small_.width}, {top, top + height, 1.0, small_.height});
    const std::optional<Pixels> of_large = read_colours(larger_, columns, rows);
    if (!of_small || !of_large) return false;
    const std::int64_t step_x = std::max<std::int64_t>(1, cell.width / blocks_along);
    const std::int64_t step_y = std::max<std::int64_t>(1, height / blocks_along);
    double blocks = 0.0;
    double as_they_are = 0.0;
    double swapped = 0.0;
    for (std::int64_t y = 0; y + step_y <= height; y += step_y) {
      for (std::int64_t x = 0; x + step_x <= cell.width; x += step_x) {
        const Range across(left + x, left + x + step_x, comparison_.factor_x, large_.width);
        const Range down(top + y, top + y + step_y, comparison_.factor_y, large_.height);
        const auto a = of_small->mean(x, y, x + step_x, y + step_y);
        const auto b = of_large->mean(across.begin - columns.begin, down.begin - rows.begin,
                                      std::min(across.end, columns.end) - columns.begin,
                                      std::min(down.end, rows.end) - rows.begin);
        as_they_are += std::abs(a.red - b.red) + std::abs(a.blue - b.blue);
        swapped += std::abs(a.red - b.blue) + std::abs(a.blue - b.red);
        blocks += 1.0;
      }
    }
    return as_they_are > 2.0 * most_difference * blocks && as_they_are > 3.0 * swapped;
  }

 private:
  struct RedAndBlue {
    double red = 0.0;
    double blue = 0.0;
  };

  /// RGB of a rectangle of a level.
  struct Pixels {
    std::int64_t width = 0;
    std::vector<std::uint8_t> samples;

    RedAndBlue mean(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom) const {
      std::uint64_t red = 0;
      std::uint64_t blue = 0;
      for (std::int64_t y = top; y < bottom; ++y) {
        const std::uint8_t* row = samples.data() + 3 * y * width;
        for (std::int64_t x = left; x < right; ++x) {
          red += row[3 * x];
          blue += row[3 * x + 2];
        }
      }
      const auto count = static_cast<double>((right - left) * (bottom - top));
      return {static_cast<double>(red) / count, static_cast<double>(blue) / count};
    }
  };

  static bool is_grey(const Level& level) {
    return level.colour == Colour::grey || level.colour == Colour::grey_inverted;
  }

  std::optional<Pixels> read_colours(std::size_t level, const Range& columns, const Range& rows) const {
    const std::int64_t width = columns.end - columns.begin;
    const std::int64_t height = rows.end - rows.begin;
    return unless_bad([&] {
      Pixels pixels{width, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height))};
      read_rgb(slide_, level, columns.begin, rows.begin, {pixels.samples.data(), 3 * width, width, height, rgb_format});
      return pixels;
    });
  }

  const Part& part_at(std::int64_t x, std::int64_t y, const std::vector<Part>& parts, std::deque<Part>& more) const {
    const std::int64_t left = x / small_.tile_width * small_.tile_width;
    const std::int64_t top = y / small_.tile_height * small_.tile_height;
    const auto is_it = [left, top](const Part& part) { return part.left == left && part.top == top; };
    const auto known = std::ranges::find_if(parts, is_it);
    if (known != parts.end()) return *known;
    const auto read_before = std::ranges::find_if(more, is_it);
    if (read_before != more.end()) return *read_before;
    budget_.check();
    more.push_back(read_part(slide_, level_, left, top));
    return more.back();
  }

  static int pixel(const Cell& cell, std::int64_t x, std::int64_t y) {
    const Picture& picture = cell.part->picture;
    return picture.pixels[static_cast<std::size_t>((cell.top + y) * picture.width + cell.left + x)];
  }

  /// Large enough, and not of one colour.
  bool can_be_judged(const Cell& cell) const {
    if (std::min(cell.width, cell.height) < least_place_side) return false;
    int least = 255;
    int most = 0;
    for (std::int64_t y = 0; y < cell.height; ++y) {
      for (std::int64_t x = 0; x < cell.width; ++x) {
        least = std::min(least, pixel(cell, x, y));
        most = std::max(most, pixel(cell, x, y));
      }
    }
    return most - least >= least_place_contrast;
  }

  /// Zeros in a file whose tiles lie where they will be written, or tiles that many places share until then.
  bool is_unwritten(const Sight& sight) const {
    const int zero = large_.colour == Colour::grey_inverted ? 255 : 0;
    if (std::ranges::all_of(sight.picture.pixels, [zero](int value) { return value == zero; })) return true;
    const std::vector<std::int64_t> tiles =
        tiles_of(large_, sight.columns.begin, sight.rows.begin, sight.picture.width, sight.picture.height);
    return std::ranges::any_of(tiles, [this](std::int64_t tile) { return is_shared(slide_, larger_, tile); });
  }

  std::vector<Footprint> footprints(const Cell& cell, const Sight& sight) const {
    const std::int64_t left = cell.part->left + cell.left;
    const std::int64_t top = cell.part->top + cell.top;
    std::vector<Range> across;
    for (std::int64_t x = left; x < left + cell.width; ++x) {
      across.emplace_back(x, x + 1, comparison_.factor_x, large_.width);
    }
    std::vector<Footprint> covered;
    covered.reserve(static_cast<std::size_t>(cell.width * cell.height));
    for (std::int64_t y = top; y < top + cell.height; ++y) {
      const Range down(y, y + 1, comparison_.factor_y, large_.height);
      const std::int64_t bottom = std::min(down.end - sight.rows.begin, sight.picture.height);
      for (const Range& range : across) {
        const std::int64_t right = std::min(range.end - sight.columns.begin, sight.picture.width);
        covered.push_back(
            footprint(sight.picture, range.begin - sight.columns.begin, down.begin - sight.rows.begin, right, bottom));
      }
    }
    return covered;
  }

  static Footprint footprint(const Picture& picture, std::int64_t left, std::int64_t top, std::int64_t right,
                             std::int64_t bottom) {
    Footprint found;
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

  /// Whether many pixels lie outside what they and their neighbours cover.
  bool exceeds(const Cell& cell, const std::vector<Footprint>& covered) const {
    const std::int64_t margin = comparison_.margin;
    std::int64_t outside = 0;
    for (std::int64_t y = margin; y < cell.height - margin; ++y) {
      for (std::int64_t x = margin; x < cell.width - margin; ++x) {
        int least = 255;
        int most = 0;
        for (std::int64_t row = y - margin; row <= y + margin; ++row) {
          for (std::int64_t column = x - margin; column <= x + margin; ++column) {
            const Footprint& each = covered[static_cast<std::size_t>(row * cell.width + column)];
            least = std::min<int>(least, each.least);
            most = std::max<int>(most, each.most);
          }
        }
        const int excess = std::max(least_excess, (most - least) / 2);
        if (pixel(cell, x, y) < least - excess || pixel(cell, x, y) > most + excess) ++outside;
      }
    }
    return least_unlike_part * outside >= (cell.width - 2 * margin) * (cell.height - 2 * margin);
  }

  /// Whether the means are farther apart than those of all pixels and some of them are.
  static bool differs_in_mean(const Cell& cell, const Sight& sight) {
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (const std::uint32_t value : sight.picture.pixels) {
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(sight.picture.pixels.size());
    const double mean = static_cast<double>(sum) / count;
    const double deviation = std::sqrt(std::max(0.0, static_cast<double>(squares) / count - mean * mean));
    const double of_small =
        cell.part->picture.mean(cell.left, cell.top, cell.left + cell.width, cell.top + cell.height);
    return std::abs(of_small - mean) > deviation + most_mean_difference;
  }

  /// Whether a cell shows what lies so many of its pixels beside it in the larger level.
  bool correlates(const Cell& cell, const std::vector<Footprint>& covered, std::int64_t by_x, std::int64_t by_y) const {
    const std::int64_t margin = comparison_.margin;
    double a = 0.0;
    double b = 0.0;
    double aa = 0.0;
    double bb = 0.0;
    double ab = 0.0;
    for (std::int64_t y = margin; y < cell.height - margin; ++y) {
      for (std::int64_t x = margin; x < cell.width - margin; ++x) {
        const double of_a = pixel(cell, x, y);
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
    return of_both > 0.0 && of_both >= least_correlation * std::sqrt(variances);
  }

  const Slide& slide_;
  std::size_t larger_;
  std::size_t level_;
  const Level& large_;
  const Level& small_;
  const Comparison& comparison_;
  const OpenBudget& budget_;
  std::vector<std::pair<std::int64_t, std::int64_t>> judged_;  ///< corners of cells
};

}  // namespace

std::uint64_t likeness_bytes(const Level& larger, const Level& level) noexcept {
  const Comparison comparison(larger, level);
  if (comparison.is_tiny || comparison.has_huge_tiles) return 0;
  const std::int64_t most = comparison.parts + comparison.places_along * comparison.places_along;
  const double tiles = static_cast<double>(std::min(most, level.columns * level.rows));
  const double parts = std::min(tiles * static_cast<double>(tile_pixels(level)),
                                static_cast<double>(level.width) * static_cast<double>(level.height));
  // A pixel of the smaller level more along each axis, as its border lies within a tile of the larger one.
  const double cell = (cell_side(larger.tile_width, comparison.factor_x) + comparison.factor_x) *
                      (cell_side(larger.tile_height, comparison.factor_y) + comparison.factor_y);
  const double most_cell = std::min(cell, static_cast<double>(most_cell_pixels));
  // With each place: what its pixels cover.
  return static_cast<std::uint64_t>(parts + most_cell +
                                    most_cell / (comparison.factor_x * comparison.factor_y) * sizeof(Footprint));
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
  PlaceComparer comparer(slide, larger, level, comparison, budget);
  Pairs pairs;
  std::size_t compared = 0;
  const Cell* first_compared = nullptr;
  const std::vector<Cell> cells = choose_cells(parts, {large.tile_width, factor_x}, {large.tile_height, factor_y});
  // Of one colour: it shows nothing but that.
  const bool is_plain = cells.empty() || cells.front().contrast == 0;
  for (const Cell& cell : cells) {
    if (cell.contrast == 0 && !is_plain) {
      if (compared == 0) return true;
      break;
    }
    if (compared == most_cells) break;
    const std::optional<Sight> sight = comparer.see(cell);
    if (!sight) continue;
    if (comparison.places_along > 0 && comparer.is_unlike(cell, *sight)) return false;
    const std::int64_t left = cell.part->left + cell.left;
    const std::int64_t top = cell.part->top + cell.top;
    const Range& columns = sight->columns;
    const Range& rows = sight->rows;
    const Picture& part = sight->picture;
    ++compared;
    if (first_compared == nullptr) first_compared = &cell;
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
  if (pairs.size() == 0 ? !is_plain : !pairs.are_alike()) return false;
  if (first_compared != nullptr && comparer.has_swapped_colours(*first_compared)) return false;
  return !comparer.has_unlike_place(parts);
}

}  // namespace slidestream
