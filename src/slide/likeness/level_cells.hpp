#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "slide/likeness/compared_levels.hpp"
#include "slide/likeness/level_picture.hpp"

// Places of a smaller level, each of which mostly takes one tile of the larger level: choosing and reading them.

namespace slidestream {

/// A tile of the smaller level: cells lie in it.
struct LevelPart {
  std::int64_t left = 0;
  std::int64_t top = 0;
  LevelPicture picture;
};

/// A rectangle of a part.
struct LevelCell {
  int pixel(std::int64_t x, std::int64_t y) const {
    const LevelPicture& picture = part->picture;
    return picture.pixels[static_cast<std::size_t>((top + y) * picture.width + left + x)];
  }

  std::int64_t level_left() const noexcept { return part->left + left; }
  std::int64_t level_top() const noexcept { return part->top + top; }

  const LevelPart* part = nullptr;
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::uint64_t contrast = 0;
};

/// How much neighbours differ within a cell, and from what lies left of and above it in the picture.
std::uint64_t contrast_of(const LevelPicture& picture, const LevelCell& cell);

/// What the larger level has where a cell lies.
struct CellSight {
  PixelRange columns;
  PixelRange rows;
  LevelPicture picture;
};

/// Where cells of the larger level lie in the smaller, along an axis.
class CellGrid {
 public:
  /// \param side  of a cell, in pixels of the larger level
  CellGrid(double side, double factor) : side_(side / factor) {}

  /// The first pixel of the cell behind the one that a pixel lies in.
  std::int64_t next(std::int64_t pixel) const;

 private:
  double side_;  ///< pixels of the smaller level
};

/// All of the level's tiles, or as many as are planned, spread over it. Those that are missing or bad are white.
std::vector<LevelPart> read_parts(const ComparedLevels& levels);

/// Of all parts, which must outlive them.
std::vector<LevelCell> all_cells(const ComparedLevels& levels, const std::vector<LevelPart>& parts);

/// Cells with the most contrast; where none has any, some that are spread over all. More than `most_compared_cells`, as
/// tiles of the larger level may be missing or bad.
std::vector<LevelCell> choose_cells(std::vector<LevelCell> cells);

/// A corner of a level.
struct LevelCorner {
  bool at_right = false;
  bool at_bottom = false;
};

/// The tile that a corner's part is in. \param parts  tiles that were read before. \param own  gets it otherwise
const LevelPart& part_at(const ComparedLevels& levels, const LevelCorner& corner, const std::vector<LevelPart>& parts,
                         LevelPart& own);

/// Cells of a part in the quarter of both axes that ends at a corner, with the most contrast first.
std::vector<LevelCell> corner_cells(const ComparedLevels& levels, const LevelPart& part, const LevelCorner& corner);

/// Of those that are chosen, so many are compared.
inline constexpr std::size_t most_compared_cells = 6;

/// Most pixels of a cell in the larger level. None of a slide is so large.
inline constexpr std::int64_t most_cell_pixels = std::int64_t{1} << 24;

/// Whether a rectangle of the larger level is zeros, in a file whose tiles lie where they will be written, or has tiles
/// that many places share until then. \param samples  of it, grey or RGB
bool may_be_unwritten(const ComparedLevels& levels, const PixelRange& columns, const PixelRange& rows,
                      const std::vector<std::uint8_t>& samples);

/// Tiles of the larger level beneath a cell.
struct TilesBeneath {
  std::size_t all = 0;
  std::size_t there = 0;  ///< that the file has
};

/// But for what the cell's first and last pixels alone may touch: where the factor isn't whole, they reach over a
/// neighbour.
TilesBeneath tiles_beneath(const ComparedLevels& levels, const LevelCell& cell);

/// What the larger level has there; nothing where it isn't whole.
std::optional<CellSight> see(const ComparedLevels& levels, const LevelCell& cell);

}  // namespace slidestream
