#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slide/likeness/level_cells.hpp"

// The verdict on a single place of two levels, by its pixels and those that they cover.

namespace slidestream {

/// What a pixel of the smaller level covers in the larger one.
struct CoveredPixels {
  std::uint8_t least = 255;
  std::uint8_t most = 0;
  float mean = 0.0F;
};

/// Finds places that show what nothing there can have been reduced to, such as labels.
class PlaceJudge {
 public:
  explicit PlaceJudge(const ComparedLevels& levels) : levels_(levels) {}

  /// Whether a cell is large enough, and has contrast as labels have, which noise and dust on glass don't.
  static bool can_be_judged(const LevelCell& cell);

  /// Whether a cell can't have been made of what the larger level has there. It can, wherever its pixels lie between
  /// the least and the most that they and their neighbours cover, however it was reduced, displaced or blurred.
  /// Sharpening, codecs and other colours exceed that, but go with what the larger level has there, or some pixels
  /// beside. Nor can it if it and the cells before it have strokes, as small type has on blank paper: pixels differ
  /// much where the larger level has one colour, also around them.
  bool is_unlike(const LevelCell& cell, const CellSight& sight);

  /// Whether a corner of the level is unlike in one of its two cells with the most contrast. \param parts  tiles of the
  /// smaller level that were read
  bool has_unlike_corner(const std::vector<LevelPart>& parts);

 private:
  static bool is_large_enough(const LevelCell& cell);

  std::vector<CoveredPixels> covered_by(const LevelCell& cell, const CellSight& sight) const;

  /// Blocks of a cell whose pixels differ much more than those that they and the pixels around them cover.
  std::int64_t count_strokes(const LevelCell& cell, const std::vector<CoveredPixels>& covered) const;

  /// Whether many pixels lie outside what they and their neighbours cover.
  bool exceeds(const LevelCell& cell, const std::vector<CoveredPixels>& covered) const;

  /// Whether a cell shows what lies at most some pixels beside it in the larger level.
  bool shows_displaced(const LevelCell& cell, const std::vector<CoveredPixels>& covered) const;

  const ComparedLevels& levels_;
  std::vector<std::pair<std::int64_t, std::int64_t>> judged_;  ///< corners of cells
  std::int64_t strokes_ = 0;                                   ///< of all cells that were judged
};

}  // namespace slidestream
