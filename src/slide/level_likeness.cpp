#include "slide/level_likeness.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "slide/likeness/black_places.hpp"
#include "slide/likeness/colour_tiles.hpp"
#include "slide/likeness/compared_levels.hpp"
#include "slide/likeness/correlation.hpp"
#include "slide/likeness/glass_type.hpp"
#include "slide/likeness/large_tiles.hpp"
#include "slide/likeness/level_cells.hpp"
#include "slide/likeness/other_colours.hpp"
#include "slide/likeness/place_judge.hpp"
#include "slide/likeness/single_pixels.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t blocks_along = 8;
constexpr double least_correlation = 0.6;
constexpr double most_difference = 8.0;      ///< of 255
constexpr std::uint64_t most_unseen = 4;     ///< times the contrast of places that are compared
constexpr std::uint64_t most_over_none = 2;  ///< times what is shown over tiles

/// Values of the same places in both levels.
class Pairs {
 public:
  void add(double a, double b) {
    ++count_;
    difference_ += std::abs(a - b);
    correlation_.add(a, b);
  }

  std::size_t size() const noexcept { return count_; }

  bool vary_together() const { return correlation_.is_at_least(least_correlation); }
  bool are_alike() const { return difference_ <= most_difference * static_cast<double>(count_) || vary_together(); }

 private:
  std::size_t count_ = 0;
  double difference_ = 0.0;
  Correlation correlation_;
};

/// Adds the means of a cell's blocks.
void add_blocks(Pairs& pairs, const ComparedLevels& levels, const LevelCell& cell, const CellSight& sight) {
  const std::int64_t left = cell.level_left();
  const std::int64_t top = cell.level_top();
  const std::int64_t step_x = std::max<std::int64_t>(1, cell.width / blocks_along);
  const std::int64_t step_y = std::max<std::int64_t>(1, cell.height / blocks_along);
  for (std::int64_t y = 0; y + step_y <= cell.height; y += step_y) {
    for (std::int64_t x = 0; x + step_x <= cell.width; x += step_x) {
      const PixelRange across(left + x, left + x + step_x, levels.plan.factor_x, levels.large.width);
      const PixelRange down(top + y, top + y + step_y, levels.plan.factor_y, levels.large.height);
      pairs.add(cell.part->picture.mean(cell.left + x, cell.top + y, cell.left + x + step_x, cell.top + y + step_y),
                sight.picture.mean(across.begin - sight.columns.begin, down.begin - sight.rows.begin,
                                   std::min(across.end - sight.columns.begin, sight.picture.width),
                                   std::min(down.end - sight.rows.begin, sight.picture.height)));
    }
  }
}

/// Pairs of what cells show and the single pixels of the larger level that they can be. Reads it again, to hold one
/// place at a time.
Pairs single_pixels_of(const ComparedLevels& levels, const std::vector<const LevelCell*>& cells) {
  Pairs pairs;
  for (const LevelCell* cell : cells) {
    const std::optional<CellSight> sight = see(levels, *cell);
    if (!sight) continue;
    for (const PixelPair& pair : closest_pixels(levels, *cell, *sight)) pairs.add(pair.small, pair.large);
  }
  return pairs;
}

/// The contrast of places that show about as much as any.
struct ShownContrast {
  std::uint64_t over_tiles = 0;
  std::uint64_t over_none = 0;  ///< where the larger level has no tile, of places that show more than noise
};

ShownContrast shown_contrast(const ComparedLevels& levels, const std::vector<LevelCell>& cells) {
  std::uint64_t most = 0;
  for (const LevelCell& cell : cells) most = std::max(most, cell.contrast);
  ShownContrast shown;
  for (const LevelCell& cell : cells) {
    if (cell.contrast == 0 || most_unseen * cell.contrast < most) continue;
    levels.budget.check();
    const TilesBeneath tiles = tiles_beneath(levels, cell);
    if (tiles.there == tiles.all) shown.over_tiles += cell.contrast;
    if (tiles.there == 0 && PlaceJudge::can_be_judged(cell)) shown.over_none += cell.contrast;
  }
  return shown;
}

bool shows_the_same(const ComparedLevels& levels, const std::vector<LevelPart>& parts,
                    const std::vector<LevelCell>& all) {
  const ShownContrast shown = shown_contrast(levels, all);
  if (shown.over_none > most_over_none * shown.over_tiles) return false;
  // A label on blank paper differs little from blank glass: beside what can't be compared, that proves nothing.
  const auto are_alike = shown.over_none > 0 ? &Pairs::vary_together : &Pairs::are_alike;
  PlaceJudge judge(levels);
  Pairs pairs;
  std::vector<const LevelCell*> compared;
  const std::vector<LevelCell> cells = choose_cells(all);
  // Of one colour: it shows nothing but that.
  const bool is_plain = cells.empty() || cells.front().contrast == 0;
  std::uint64_t unseen = 0;
  std::uint64_t seen = 0;
  for (const LevelCell& cell : cells) {
    if (cell.contrast == 0 && !is_plain) break;
    if (compared.size() == most_compared_cells) break;
    const std::optional<CellSight> sight = see(levels, cell);
    if (!sight) {
      unseen = std::max(unseen, cell.contrast);
      continue;
    }
    seen = std::max(seen, cell.contrast);
    if (levels.plan.has_places && judge.is_unlike(cell, *sight)) return false;
    compared.push_back(&cell);
    add_blocks(pairs, levels, cell, *sight);
  }
  // What shows most lies where the larger level has no tiles.
  if (unseen > most_unseen * seen) return false;
  if (compared.empty()) return is_plain;
  if (!(pairs.*are_alike)()) {
    const Pairs single = single_pixels_of(levels, compared);
    if (single.size() == 0 || !(single.*are_alike)()) return false;
  }
  ColourTiles colours(levels.slide);
  if (has_other_colours(levels, compared, colours)) return false;
  if (!levels.plan.has_places) return true;
  return !judge.has_unlike_corner(parts) && !shows_type_on_glass(levels, parts, colours);
}

}  // namespace

std::uint64_t likeness_bytes(const Slide& slide, std::size_t larger, std::size_t number) {
  const Level& level = slide.coded_level(number);
  const ComparisonPlan plan(slide.coded_level(0), slide.coded_level(larger), level);
  if (plan.is_tiny || plan.is_beyond_comparison) return 0;
  const std::int64_t most = plan.parts + (plan.has_places ? 1 : 0);
  const double tiles = static_cast<double>(std::min(most, level.columns * level.rows));
  const double parts = std::min(tiles * static_cast<double>(tile_pixels(level)),
                                static_cast<double>(level.width) * static_cast<double>(level.height));
  // A pixel of the smaller level more along each axis, as its border lies within a tile of the larger one.
  const double cell = (plan.cell_width + plan.factor_x) * (plan.cell_height + plan.factor_y);
  const double most_cell = std::min(cell, static_cast<double>(most_cell_pixels));
  // With each place: what its pixels cover.
  const double of_cell = most_cell + most_cell / (plan.factor_x * plan.factor_y) * sizeof(CoveredPixels);
  const Level& whole = slide.coded_level(larger);
  const double all = 3.0 * static_cast<double>(whole.width) * static_cast<double>(whole.height);
  const double of_type = plan.has_places ? std::min(all, static_cast<double>(glass_type_bytes)) : 0.0;
  const double of_both = all + 3.0 * static_cast<double>(level.width) * static_cast<double>(level.height);
  const double in_colour = std::min(of_both, static_cast<double>(ColourTiles::most_bytes));
  return static_cast<std::uint64_t>(parts + std::max(of_cell, of_type) + in_colour) + LargeTiles::bytes_of(whole) +
         LargeTiles::bytes_of(level);
}

LevelLikeness likeness_of(const Slide& slide, std::size_t larger, std::size_t level, const OpenBudget& budget) {
  const ComparedLevels levels(slide, larger, level, budget);
  if (levels.plan.is_tiny) return {true, {}};
  if (levels.plan.is_beyond_comparison) return {false, {}};
  const std::vector<LevelPart> parts = read_parts(levels);
  const std::vector<LevelCell> cells = all_cells(levels, parts);
  if (!shows_the_same(levels, parts, cells)) return {false, {}};
  return {true, look_at_black_places(levels, cells)};
}

}  // namespace slidestream
