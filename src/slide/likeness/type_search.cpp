#include "slide/likeness/type_search.hpp"

#include <algorithm>

#include "slide/likeness/level_cells.hpp"

namespace slidestream {
namespace {

constexpr std::size_t most_tiles = 16;        ///< of a window: smaller ones are read together
constexpr int most_glass_range = 24;          ///< of the larger level's pixels
constexpr std::size_t least_type_blocks = 8;  ///< of all windows: about two letters, and more than dust has

/// What a block has of strokes on glass.
std::array<int, 3> strengths_on_glass(const RgbPicture& picture, std::int64_t left, std::int64_t top) {
  const std::array<int, 3> strengths = stroke_strengths(picture, left, top);
  return strengths == std::array<int, 3>{} || !glass_around(picture, left, top) ? std::array<int, 3>{} : strengths;
}

PixelRange within(PixelRange range, std::int64_t begin, std::int64_t end) {
  range.begin = std::max(range.begin, begin);
  range.end = std::min(range.end, end);
  return range;
}

}  // namespace

bool TypeSearch::Block::may_show_type() const {
  for (std::size_t i = 0; i < 3; ++i) {
    const int range = std::max(0, beneath[i].size());
    if (range <= most_glass_range && (!strengths || (*strengths)[i] >= least_type_stroke + range)) return true;
  }
  return false;
}

bool TypeSearch::Block::waits_for(const Look& look, std::size_t larger) const {
  if (look.is_done) return false;
  if (look.level != larger) return !strengths;
  return look.columns.begin < columns.end && columns.begin < look.columns.end && look.rows.begin < rows.end &&
         rows.begin < look.rows.end;
}

TypeSearch::TypeSearch(const ComparedLevels& levels, ColourTiles& colours, const std::vector<TypeWindow>& windows)
    : levels_(levels), colours_(colours) {
  for (const TypeWindow& window : windows) add_place(window);
}

bool TypeSearch::finds_type() {
  for (std::size_t i = 0; i < places_.size(); ++i) add_blocks(i);
  while (blocks_.size() >= least_type_blocks && look_further()) levels_.budget.check();
  if (blocks_.size() < least_type_blocks) return false;
  // All is seen that could rule them out.
  std::size_t blocks = 0;
  for (std::size_t i = 0; i < places_.size() && blocks < least_type_blocks; ++i) {
    const auto count = std::ranges::count(blocks_, i, &Block::place);
    if (count > 0 && is_whole(places_[i])) blocks += static_cast<std::size_t>(count);
  }
  return blocks >= least_type_blocks;
}

void TypeSearch::add_place(const TypeWindow& window) {
  const PixelRange columns(window.left, window.left + window.side, levels_.plan.factor_x, levels_.large.width);
  const PixelRange rows(window.top, window.top + window.side, levels_.plan.factor_y, levels_.large.height);
  Place place{window, columns, rows, {}};
  place.looks.push_back({levels_.level,
                         {window.left, window.left + window.side, 1.0, levels_.small.width},
                         {window.top, window.top + window.side, 1.0, levels_.small.height}});
  if (lacks_tiles(place)) return;
  const Level& large = levels_.large;
  const std::vector<std::int64_t> tiles = tiles_of(large, columns.begin, rows.begin, columns.size(), rows.size());
  if (tiles.size() > most_tiles || !colours_.keeps(levels_.larger)) {
    place.looks.push_back({levels_.larger, columns, rows});
  } else {
    for (const std::int64_t tile : tiles) {
      const std::int64_t left = tile % large.columns * large.tile_width;
      const std::int64_t top = tile / large.columns * large.tile_height;
      place.looks.push_back(
          {levels_.larger, within(columns, left, left + large.tile_width), within(rows, top, top + large.tile_height)});
    }
  }
  places_.push_back(std::move(place));
}

bool TypeSearch::lacks_tiles(const Place& place) const {
  const Look& small = place.looks.front();
  const auto lacks = [&](std::size_t level, const PixelRange& columns, const PixelRange& rows) {
    return std::ranges::any_of(
        tiles_of(levels_.slide.coded_level(level), columns.begin, rows.begin, columns.size(), rows.size()),
        [&](std::int64_t tile) { return levels_.slide.tile(level, tile).length == 0; });
  };
  return lacks(levels_.level, small.columns, small.rows) || lacks(levels_.larger, place.columns, place.rows);
}

/// Blocks whose pixels lie in tiles that are kept are seen at once.
void TypeSearch::add_blocks(std::size_t number) {
  const TypeWindow& at = places_[number].at;
  for (std::int64_t top = at.around; top + stroke_block + at.around <= at.side; top += stroke_block) {
    for (std::int64_t left = at.around; left + stroke_block + at.around <= at.side; left += stroke_block) {
      const std::int64_t x = at.left + left;
      const std::int64_t y = at.top + top;
      if (x + stroke_block / 2 < at.first_x || y + stroke_block / 2 < at.first_y) continue;
      Block block{number,
                  x,
                  y,
                  {x - at.around, x + stroke_block + at.around, levels_.plan.factor_x, levels_.large.width},
                  {y - at.around, y + stroke_block + at.around, levels_.plan.factor_y, levels_.large.height}};
      const PixelRange across(x - stroke_reach, x + stroke_block + stroke_reach, 1.0, levels_.small.width);
      const PixelRange down(y - stroke_reach, y + stroke_block + stroke_reach, 1.0, levels_.small.height);
      if (colours_.has(levels_.level, across, down)) {
        block.strengths = strengths_on_glass(colours_.read(levels_.level, across, down), stroke_reach, stroke_reach);
      }
      if (block.may_show_type()) blocks_.push_back(block);
    }
  }
}

/// Reads what most blocks wait for. \return false: they wait for nothing
bool TypeSearch::look_further() {
  for (Place& place : places_) {
    for (Look& each : place.looks) each.waiting = 0;
  }
  for (const Block& block : blocks_) {
    for (Look& each : places_[block.place].looks) each.waiting += block.waits_for(each, levels_.larger) ? 1 : 0;
  }
  std::size_t most = 0;
  std::size_t number = 0;
  Look* best = nullptr;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    for (Look& each : places_[i].looks) {
      if (each.waiting == 0) continue;
      // What needs no decoding comes first.
      if (colours_.has(each.level, each.columns, each.rows)) each.waiting += blocks_.size();
      if (each.waiting <= most) continue;
      most = each.waiting;
      number = i;
      best = &each;
    }
  }
  if (best == nullptr) return false;
  look(number, *best);
  return true;
}

void TypeSearch::look(std::size_t number, Look& at) {
  const std::optional<RgbPicture> picture = colours_.read_whole(at.level, at.columns, at.rows);
  for (Block& block : blocks_) {
    if (block.place != number || !picture || !block.waits_for(at, levels_.larger)) continue;
    if (at.level == levels_.level) {
      block.strengths = strengths_on_glass(*picture, block.left - at.columns.begin, block.top - at.rows.begin);
      continue;
    }
    const ColourRange range = range_within(*picture, std::max(block.columns.begin, at.columns.begin) - at.columns.begin,
                                           std::max(block.rows.begin, at.rows.begin) - at.rows.begin,
                                           std::min(block.columns.end, at.columns.end) - at.columns.begin,
                                           std::min(block.rows.end, at.rows.end) - at.rows.begin, most_glass_range + 1);
    for (std::size_t i = 0; i < 3; ++i) block.beneath[i].add(range[i]);
  }
  at.is_done = true;
  std::erase_if(blocks_,
                [&](const Block& block) { return block.place == number && (!picture || !block.may_show_type()); });
}

/// Whether all of a place can be read in both levels, and was written.
bool TypeSearch::is_whole(const Place& place) {
  levels_.budget.check();
  const Look& small = place.looks.front();
  const std::optional<RgbPicture> large = colours_.read_whole(levels_.larger, place.columns, place.rows);
  return large && !may_be_unwritten(levels_, place.columns, place.rows, large->samples) &&
         colours_.read_whole(small.level, small.columns, small.rows);
}

}  // namespace slidestream
