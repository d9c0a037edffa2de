#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
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

  /// The first pixel of the cell that a pixel lies in, and the one behind its last, both within `begin` to `end`.
  std::pair<std::int64_t, std::int64_t> around(std::int64_t pixel, std::int64_t begin, std::int64_t end) const;

 private:
  double side_;  ///< pixels of the smaller level
};

/// The tile that begins at a pixel. Where it is missing or bad it is white.
LevelPart read_part(const ComparedLevels& levels, std::int64_t left, std::int64_t top);

/// All of the level's tiles, or as many as are planned, spread over it.
std::vector<LevelPart> read_parts(const ComparedLevels& levels);

/// Cells with the most contrast; where none has any, some that are spread over all. More than `most_compared_cells`, as
/// tiles of the larger level may be missing or bad.
std::vector<LevelCell> choose_cells(const ComparedLevels& levels, const std::vector<LevelPart>& parts);

/// Of those that are chosen, so many are compared.
inline constexpr std::size_t most_compared_cells = 6;

/// Most pixels of a cell in the larger level. None of a slide is so large.
inline constexpr std::int64_t most_cell_pixels = std::int64_t{1} << 24;

/// What the larger level has there; nothing where it isn't whole.
std::optional<CellSight> see(const ComparedLevels& levels, const LevelCell& cell);

}  // namespace slidestream
