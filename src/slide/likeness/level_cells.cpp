#include "slide/likeness/level_cells.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace slidestream {
namespace {

constexpr std::size_t most_tried_cells = 48;  ///< where tiles of the larger level are missing or bad

/// The tile that begins at a pixel.
LevelPart read_part(const ComparedLevels& levels, std::int64_t left, std::int64_t top) {
  const Level& small = levels.small;
  return {left, top,
          read_picture(levels.slide, levels.level, left, top, std::min(small.tile_width, small.width - left),
                       std::min(small.tile_height, small.height - top), BadTilePolicy::white)};
}

std::vector<LevelCell> cells_of(const ComparedLevels& levels, const LevelPart& part) {
  const CellGrid across(levels.plan.cell_width, levels.plan.factor_x);
  const CellGrid down(levels.plan.cell_height, levels.plan.factor_y);
  const std::int64_t right = part.left + part.picture.width;
  const std::int64_t bottom = part.top + part.picture.height;
  std::vector<LevelCell> cells;
  for (std::int64_t top = part.top; top < bottom; top = down.next(top)) {
    for (std::int64_t left = part.left; left < right; left = across.next(left)) {
      LevelCell cell{&part, left - part.left, top - part.top, std::min(across.next(left), right) - left,
                     std::min(down.next(top), bottom) - top};
      cell.contrast = contrast_of(part.picture, cell);
      cells.push_back(cell);
    }
  }
  return cells;
}

/// Whether the middle of a range lies in the quarter of an axis at its begin, or at its end.
bool is_in_quarter(std::int64_t begin, std::int64_t size, std::int64_t of, bool at_end) {
  const std::int64_t twice = 2 * begin + size;
  return at_end ? 2 * twice >= 3 * of : 2 * twice <= of;
}

/// The first pixel of the tile that a twentieth of an axis from its begin lies in, or from its end.
std::int64_t corner_tile(std::int64_t size, std::int64_t tile, bool at_end) {
  const std::int64_t inset = size / 20;
  return (at_end ? size - 1 - inset : inset) / tile * tile;
}

/// Whether a tile's bytes are those of its neighbour, too: white tiles, and those that aren't written yet.
bool is_shared(const Slide& slide, std::size_t level, std::int64_t tile) {
  const Level& of = slide.coded_level(level);
  if (of.codec == Codec::openslide) return false;  // where its bytes lie isn't known
  const std::uint64_t offset = slide.tile(level, tile).offset;
  return (tile > 0 && slide.tile(level, tile - 1).offset == offset) ||
         (tile + 1 < of.columns * of.rows && slide.tile(level, tile + 1).offset == offset);
}

}  // namespace

std::int64_t CellGrid::next(std::int64_t pixel) const {
  const double cell = std::floor((static_cast<double>(pixel) + 0.5) / side_) + 1.0;
  return std::max(pixel + 1, static_cast<std::int64_t>(std::ceil(cell * side_ - 0.5)));
}

std::uint64_t contrast_of(const LevelPicture& picture, const LevelCell& cell) {
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

std::vector<LevelPart> read_parts(const ComparedLevels& levels) {
  const Level& small = levels.small;
  const std::int64_t tiles = small.columns * small.rows;
  const std::int64_t count = std::min(tiles, levels.plan.parts);
  std::vector<LevelPart> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    levels.budget.check();
    const std::int64_t tile = tiles * (2 * i + 1) / (2 * count);
    parts.push_back(
        read_part(levels, tile % small.columns * small.tile_width, tile / small.columns * small.tile_height));
  }
  return parts;
}

std::vector<LevelCell> all_cells(const ComparedLevels& levels, const std::vector<LevelPart>& parts) {
  std::vector<LevelCell> cells;
  for (const LevelPart& part : parts) {
    const std::vector<LevelCell> of_part = cells_of(levels, part);
    cells.insert(cells.end(), of_part.begin(), of_part.end());
  }
  return cells;
}

std::vector<LevelCell> choose_cells(std::vector<LevelCell> cells) {
  if (std::ranges::none_of(cells, [](const LevelCell& cell) { return cell.contrast > 0; })) {
    const std::size_t spread = std::min(most_compared_cells, cells.size());
    for (std::size_t i = 0; i < spread; ++i) cells[i] = cells[cells.size() * (2 * i + 1) / (2 * spread)];
    cells.resize(spread);
    return cells;
  }
  const auto count = std::min(most_tried_cells, cells.size());
  std::partial_sort(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(count), cells.end(),
                    [](const LevelCell& a, const LevelCell& b) { return a.contrast > b.contrast; });
  cells.resize(count);
  return cells;
}

const LevelPart& part_at(const ComparedLevels& levels, const LevelCorner& corner, const std::vector<LevelPart>& parts,
                         LevelPart& own) {
  const Level& small = levels.small;
  const std::int64_t left = corner_tile(small.width, small.tile_width, corner.at_right);
  const std::int64_t top = corner_tile(small.height, small.tile_height, corner.at_bottom);
  const auto is_it = [left, top](const LevelPart& part) { return part.left == left && part.top == top; };
  const auto known = std::ranges::find_if(parts, is_it);
  if (known != parts.end()) return *known;
  levels.budget.check();
  own = read_part(levels, left, top);
  return own;
}

std::vector<LevelCell> corner_cells(const ComparedLevels& levels, const LevelPart& part, const LevelCorner& corner) {
  std::vector<LevelCell> cells = cells_of(levels, part);
  std::erase_if(cells, [&](const LevelCell& cell) {
    return !is_in_quarter(cell.level_left(), cell.width, levels.small.width, corner.at_right) ||
           !is_in_quarter(cell.level_top(), cell.height, levels.small.height, corner.at_bottom);
  });
  std::ranges::stable_sort(cells, [](const LevelCell& a, const LevelCell& b) { return a.contrast > b.contrast; });
  return cells;
}

bool may_be_unwritten(const ComparedLevels& levels, const PixelRange& columns, const PixelRange& rows,
                      const std::vector<std::uint8_t>& samples) {
  const int zero = levels.large.colour == Colour::grey_inverted ? 255 : 0;
  if (std::ranges::all_of(samples, [zero](int value) { return value == zero; })) return true;
  const std::vector<std::int64_t> tiles =
      tiles_of(levels.large, columns.begin, rows.begin, columns.size(), rows.size());
  return std::ranges::any_of(tiles, [&](std::int64_t tile) { return is_shared(levels.slide, levels.larger, tile); });
}

TilesBeneath tiles_beneath(const ComparedLevels& levels, const LevelCell& cell) {
  const auto inner = [](std::int64_t begin, std::int64_t size, double factor, std::int64_t of) {
    const std::int64_t inset = size > 2 ? 1 : 0;
    return PixelRange(begin + inset, begin + size - inset, factor, of);
  };
  const PixelRange columns = inner(cell.level_left(), cell.width, levels.plan.factor_x, levels.large.width);
  const PixelRange rows = inner(cell.level_top(), cell.height, levels.plan.factor_y, levels.large.height);
  const Level& large = levels.large;
  TilesBeneath tiles;
  for (std::int64_t row = rows.begin / large.tile_height; row * large.tile_height < rows.end; ++row) {
    for (std::int64_t column = columns.begin / large.tile_width; column * large.tile_width < columns.end; ++column) {
      ++tiles.all;
      if (levels.slide.tile(levels.larger, row * large.columns + column).length != 0) ++tiles.there;
    }
  }
  return tiles;
}

std::optional<CellSight> see(const ComparedLevels& levels, const LevelCell& cell) {
  const std::int64_t left = cell.level_left();
  const std::int64_t top = cell.level_top();
  const PixelRange columns(left, left + cell.width, levels.plan.factor_x, levels.large.width);
  const PixelRange rows(top, top + cell.height, levels.plan.factor_y, levels.large.height);
  if (columns.size() > most_cell_pixels / rows.size()) return std::nullopt;
  levels.budget.check();
  std::optional<LevelPicture> picture = read_whole_picture(levels.slide, levels.larger, columns, rows);
  if (!picture) return std::nullopt;
  return CellSight{columns, rows, std::move(*picture)};
}

}  // namespace slidestream
