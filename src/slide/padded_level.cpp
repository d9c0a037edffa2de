#include "slide/padded_level.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "slide/level_coding.hpp"
#include "slide/level_factor.hpp"
#include "slide/likeness/compared_levels.hpp"
#include "slide/likeness/correlation.hpp"
#include "slide/likeness/level_cells.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t largest_step = 64;  ///< pixels of the other level along one of the level
constexpr std::int64_t largest_factor_of_padded = std::int64_t{1} << 16;
constexpr std::size_t most_compared_patches = 4;
constexpr std::int64_t least_patch_side = 8;      ///< pixels of the level
constexpr std::int64_t largest_patch_side = 64;   ///< likewise
constexpr std::int64_t most_covered_side = 1024;  ///< pixels of the other level that a patch covers along an axis
constexpr std::uint64_t most_patch_bytes = std::uint64_t{1} << 21;  ///< all patches, and what one covers
constexpr double least_drift = 1.5;           ///< pixels of the level; single pixels may lie half a one off
constexpr double least_patch_likeness = 0.5;  ///< a correlation
constexpr double least_likeness_gain = 0.02;  ///< on average
constexpr double most_lost_share = 0.03;      ///< of a cut level's side
constexpr double most_lost_pixels = 8.0;      ///< of the level, where that is more

/// How much is read. Few large tiles, as decoding one may take tenths of a second.
struct PatchPlan {
  explicit PatchPlan(const ComparedLevels& levels) {
    constexpr std::int64_t most_pixels_each = std::int64_t{1} << 18;
    if (std::max(tile_pixels(levels.large), tile_pixels(levels.small)) <= most_pixels_each) return;
    tiles_along = 2;
    most_patches = 2;
  }

  std::int64_t tiles_along = 4;  ///< of the level, along an axis
  std::size_t most_patches = 6;  ///< that are looked for in the other level
};

Size size_of(const Level& level) noexcept { return {level.width, level.height}; }

/// A size without padding.
struct UnpaddedSize {
  std::int64_t factor = 0;  ///< a power of two
  std::int64_t width = 0;
  std::int64_t height = 0;
};

/// The side without padding, which a side without any is itself. 0: it is no side of that factor.
/// \param base_tile, tile  of level 0 and of the level
std::int64_t unpadded_side(std::int64_t base, std::int64_t side, std::int64_t factor, std::int64_t base_tile,
                           std::int64_t tile) {
  const std::int64_t needed = (base + factor - 1) / factor;
  if (side == needed || side == base / factor) return side;
  for (const std::int64_t whole : {base_tile, tile}) {
    // Level 0, or a level between, may have been padded before it was halved.
    for (std::int64_t unit = whole; unit <= whole * factor; unit *= 2) {
      const std::int64_t padded = (base + unit - 1) / unit * unit;
      if (side == (padded + factor - 1) / factor) return needed;
    }
  }
  return 0;
}

std::optional<UnpaddedSize> unpadded_size(const Level& base, const Level& level) {
  if (!base.tiled || !level.tiled || level.width >= base.width || level.height >= base.height) return std::nullopt;
  const double ratio = static_cast<double>(base.width) / static_cast<double>(level.width);
  UnpaddedSize size;
  size.factor = std::int64_t{1} << std::lround(std::log2(ratio));
  if (size.factor < 2 || size.factor > largest_factor_of_padded) return std::nullopt;
  size.width = unpadded_side(base.width, level.width, size.factor, base.tile_width, level.tile_width);
  size.height = unpadded_side(base.height, level.height, size.factor, base.tile_height, level.tile_height);
  if (size.width == 0 || size.height == 0) return std::nullopt;
  if (size.width == level.width && size.height == level.height) return std::nullopt;
  // Its tiles stay where they are.
  if ((size.width + level.tile_width - 1) / level.tile_width != level.columns) return std::nullopt;
  if ((size.height + level.tile_height - 1) / level.tile_height != level.rows) return std::nullopt;
  return size;
}

/// The side without padding by a factor that the file says; 0: it is shorter, or longer than a tile more explains.
std::int64_t said_side(std::int64_t base, std::int64_t side, std::int64_t factor, std::int64_t tile) {
  const std::int64_t needed = (base + factor - 1) / factor;
  if (side == needed || side == base / factor) return side;
  const std::int64_t in_tiles = (needed + tile - 1) / tile * tile;
  return side > needed && side <= in_tiles + tile ? needed : 0;
}

/// By a factor that the file says, if the size alone isn't one of it.
std::optional<UnpaddedSize> said_size(const Level& base, const Level& level, std::int64_t factor) {
  if (factor < 2 || factor > largest_factor_of_padded || !base.tiled || !level.tiled) return std::nullopt;
  if (level.width >= base.width || level.height >= base.height) return std::nullopt;
  const UnpaddedSize size{factor, said_side(base.width, level.width, factor, level.tile_width),
                          said_side(base.height, level.height, factor, level.tile_height)};
  if (size.width == 0 || size.height == 0) return std::nullopt;
  if (size.width == level.width && size.height == level.height) return std::nullopt;
  return size;
}

/// The smallest level before one whose factor is a smaller power of two: level 0, if no other.
std::size_t settled_level(const Slide& slide, std::size_t level, std::int64_t factor) {
  const Level& base = slide.coded_level(0);
  for (std::size_t before = level; before-- > 1;) {
    const Level& other = slide.coded_level(before);
    const LevelFactors down = factors_of(base, other);
    const bool is_power = std::exp2(std::round(std::log2(down.x))) == down.x;
    if (is_power && down.x < static_cast<double>(factor) && down.y == down.x) return before;
  }
  return 0;
}

/// A level by the ratio of its sizes, and by the whole factor, beside the same other one.
struct Readings {
  ComparedLevels by_ratio;
  ComparedLevels by_whole;
};

enum class Verdict { ratio, whole, unclear };

/// A cell of its own.
struct Patch {
  LevelCell cell() const { return {&part, 0, 0, part.picture.width, part.picture.height, contrast}; }

  LevelPart part;
  std::uint64_t contrast = 0;
};

/// Pixels of the level by which both readings place the middle of a cell differently.
double drift_at(const Readings& readings, const LevelCell& cell) {
  const ComparisonPlan& ratio = readings.by_ratio.plan;
  const ComparisonPlan& whole = readings.by_whole.plan;
  const double x = static_cast<double>(2 * cell.level_left() + cell.width) / 2.0;
  const double y = static_cast<double>(2 * cell.level_top() + cell.height) / 2.0;
  return std::max(x * std::abs(ratio.factor_x / whole.factor_x - 1.0),
                  y * std::abs(ratio.factor_y / whole.factor_y - 1.0));
}

Patch copy_of(const LevelCell& cell) {
  Patch patch;
  patch.part = {cell.level_left(), cell.level_top(), {cell.width, cell.height, {}}};
  patch.contrast = cell.contrast;
  const LevelPicture& from = cell.part->picture;
  for (std::int64_t row = cell.top; row < cell.top + cell.height; ++row) {
    const auto begin = from.pixels.begin() + row * from.width + cell.left;
    patch.part.picture.pixels.insert(patch.part.picture.pixels.end(), begin, begin + cell.width);
  }
  return patch;
}

/// The cell of a tile with the most contrast of those that both readings place differently.
std::optional<Patch> patch_of(const Readings& readings, const LevelPart& part, std::int64_t side) {
  LevelCell best;
  for (std::int64_t top = 0; top < part.picture.height; top += side) {
    for (std::int64_t left = 0; left < part.picture.width; left += side) {
      LevelCell cell{&part, left, top, std::min(side, part.picture.width - left),
                     std::min(side, part.picture.height - top)};
      if (std::min(cell.width, cell.height) < least_patch_side || drift_at(readings, cell) < least_drift) continue;
      cell.contrast = contrast_of(part.picture, cell);
      if (cell.contrast > best.contrast) best = cell;
    }
  }
  if (best.contrast == 0) return std::nullopt;
  return copy_of(best);
}

/// So many tiles of an axis: the last one, and others at equal distances before it.
std::vector<std::int64_t> spread_tiles(std::int64_t tiles, std::int64_t count) {
  std::vector<std::int64_t> spread;
  for (std::int64_t i = 1; i <= count; ++i) spread.push_back((tiles * i + count - 1) / count - 1);
  spread.erase(std::unique(spread.begin(), spread.end()), spread.end());
  return spread;
}

/// Those with the most contrast first.
std::vector<Patch> patches_of(const Readings& readings) {
  const ComparedLevels& levels = readings.by_whole;
  const Level& small = levels.small;
  const auto step = static_cast<std::int64_t>(std::max(levels.plan.factor_x, levels.plan.factor_y));
  const std::int64_t side = std::min(largest_patch_side, most_covered_side / step);
  const PatchPlan plan(levels);
  std::vector<Patch> patches;
  for (const std::int64_t row : spread_tiles(small.rows, plan.tiles_along)) {
    for (const std::int64_t column : spread_tiles(small.columns, plan.tiles_along)) {
      levels.budget.check();
      const std::int64_t left = column * small.tile_width;
      const std::int64_t top = row * small.tile_height;
      const LevelPart part{
          left, top,
          read_picture(levels.slide, levels.level, left, top, std::min(small.tile_width, small.width - left),
                       std::min(small.tile_height, small.height - top), BadTilePolicy::white)};
      if (std::optional<Patch> patch = patch_of(readings, part, side)) patches.push_back(std::move(*patch));
    }
  }
  std::ranges::stable_sort(patches, [](const Patch& a, const Patch& b) { return a.contrast > b.contrast; });
  if (patches.size() > plan.most_patches) patches.resize(plan.most_patches);
  return patches;
}

/// How a cell's pixels go with the means of those that they cover; nothing where tiles are missing or bad.
std::optional<double> correlation_of(const ComparedLevels& levels, const LevelCell& cell) {
  const std::optional<CellSight> sight = see(levels, cell);
  if (!sight) return std::nullopt;
  Correlation correlation;
  for (std::int64_t y = 0; y < cell.height; ++y) {
    const std::int64_t row = cell.level_top() + y;
    const PixelRange down(row, row + 1, levels.plan.factor_y, levels.large.height);
    for (std::int64_t x = 0; x < cell.width; ++x) {
      const std::int64_t column = cell.level_left() + x;
      const PixelRange across(column, column + 1, levels.plan.factor_x, levels.large.width);
      correlation.add(cell.pixel(x, y),
                      sight->picture.mean(across.begin - sight->columns.begin, down.begin - sight->rows.begin,
                                          std::min(across.end - sight->columns.begin, sight->picture.width),
                                          std::min(down.end - sight->rows.begin, sight->picture.height)));
    }
  }
  return correlation.coefficient();
}

/// Which of both readings places of the level fit better. \throws SlideError
Verdict compare_places(const Readings& readings) {
  const ComparisonPlan& plan = readings.by_whole.plan;
  if (plan.is_beyond_comparison || std::max(plan.factor_x, plan.factor_y) > static_cast<double>(largest_step)) {
    return Verdict::unclear;
  }
  double gain = 0.0;
  std::size_t compared = 0;
  for (const Patch& patch : patches_of(readings)) {
    if (compared == most_compared_patches) break;
    const LevelCell cell = patch.cell();
    const std::optional<double> whole = correlation_of(readings.by_whole, cell);
    const std::optional<double> ratio = correlation_of(readings.by_ratio, cell);
    if (!whole || !ratio || std::max(*whole, *ratio) < least_patch_likeness) continue;
    gain += *whole - *ratio;
    ++compared;
  }
  const double wanted_gain = least_likeness_gain * static_cast<double>(compared);
  if (compared == 0 || std::abs(gain) < wanted_gain) return Verdict::unclear;
  return gain > 0.0 ? Verdict::whole : Verdict::ratio;
}

/// Pixels of the level between what both readings say of its last one.
double largest_drift(const Level& base, const Level& level, std::int64_t factor) {
  const auto along = [factor](std::int64_t larger, std::int64_t side) {
    return std::abs(static_cast<double>(larger) / static_cast<double>(factor) - static_cast<double>(side));
  };
  return std::max(along(base.width, level.width), along(base.height, level.height));
}

}  // namespace

std::uint64_t padding_bytes(const Level& base, const Level& level, std::int64_t said_factor) noexcept {
  if (!unpadded_size(base, level) && !said_size(base, level, said_factor) &&
      factor_of_cut(size_of(base), size_of(level)) == 0)
    return 0;
  return static_cast<std::uint64_t>(tile_pixels(level)) + most_patch_bytes;
}

std::optional<Level> without_padding(const Slide& slide, std::size_t level, const OpenBudget& budget) {
  const Level& base = slide.coded_level(0);
  Level cut = slide.coded_level(level);
  std::optional<UnpaddedSize> size = unpadded_size(base, cut);
  const std::int64_t said_factor = coding_of(slide, level).said_factor;
  if (said_factor > 0 && (!size || size->factor != said_factor)) size = said_size(base, cut, said_factor);
  if (!size) return std::nullopt;
  cut.width = size->width;
  cut.height = size->height;
  cut.columns = (cut.width + cut.tile_width - 1) / cut.tile_width;
  cut.rows = (cut.height + cut.tile_height - 1) / cut.tile_height;
  cut.downsample = level_factor(base.width, cut.width);
  const std::size_t other = settled_level(slide, level, size->factor);
  if (compare_places({{slide, other, level, budget}, {slide, other, level, cut, budget}}) != Verdict::whole) {
    return std::nullopt;
  }
  return cut;
}

std::int64_t factor_of_cut(const Size& base, const Size& level) noexcept {
  if (level.width >= base.width || level.height >= base.height || std::min(level.width, level.height) < 1) return 0;
  const auto loses_little = [](std::int64_t larger, std::int64_t side, std::int64_t factor) {
    const double whole = static_cast<double>(larger) / static_cast<double>(factor);
    const double lost = std::floor(whole) - static_cast<double>(side);
    return static_cast<double>(side) <= std::ceil(whole) && lost <= std::max(most_lost_pixels, most_lost_share * whole);
  };
  const double ratio = static_cast<double>(base.width) / static_cast<double>(level.width);
  if (ratio > static_cast<double>(largest_factor_of_padded)) return 0;
  for (const std::int64_t factor :
       {std::int64_t{1} << std::lround(std::log2(ratio)), static_cast<std::int64_t>(std::lround(ratio))}) {
    if (factor < 2 || !loses_little(base.width, level.width, factor) ||
        !loses_little(base.height, level.height, factor)) {
      continue;
    }
    const auto whole = static_cast<double>(factor);
    const bool is_whole =
        level_factor(base.width, level.width) == whole && level_factor(base.height, level.height) == whole;
    return is_whole ? 0 : factor;
  }
  return 0;
}

std::optional<CutLevel> cut_level(const Slide& slide, std::size_t level, const OpenBudget& budget) {
  const Level& base = slide.coded_level(0);
  CutLevel cut{slide.coded_level(level)};
  const std::int64_t factor = factor_of_cut(size_of(base), size_of(cut.level));
  if (factor == 0 || !base.tiled || !cut.level.tiled || largest_drift(base, cut.level, factor) < least_drift)
    return std::nullopt;
  Level whole = cut.level;
  whole.cut_factor = factor;
  whole.downsample = static_cast<double>(factor);
  const std::size_t other = settled_level(slide, level, factor);
  const Verdict verdict = compare_places({{slide, other, level, budget}, {slide, other, level, whole, budget}});
  if (verdict == Verdict::ratio) return std::nullopt;
  cut.is_told = verdict == Verdict::whole;
  if (cut.is_told) cut.level = whole;
  return cut;
}

}  // namespace slidestream
