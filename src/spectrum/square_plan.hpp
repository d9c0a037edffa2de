#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <slidestream/config.hpp>

/// \file
/// How windows whose side is a power of two are transformed, the same for every vector unit: steps and their constants.
/// Columns come first: the real pixels of a column are the transform of half as many complex numbers, of which each
/// vector lane has its own. The spectra of L columns are transposed, L being the lanes, so that lanes are ky; then
/// rows.

namespace slidestream {

constexpr int min_square_side = 16;
constexpr int max_square_side = 1024;
constexpr bool is_square_side(int side) {
  return side >= min_square_side && side <= max_square_side && (side & (side - 1)) == 0;
}

/// One step of a transform decimated in frequency: DFTs of the `radix` elements `apart` from each other. In its block
/// of radix x apart elements, element j + k apart takes coefficient k times e^(-2 pi i j k / (radix apart)).
struct TransformStep {
  std::size_t radix = 0;
  std::size_t apart = 0;
  std::vector<float> turns;  ///< [j][k][re, im]
};

/// A transform of `points` complex numbers: up to two steps, then DFTs of `last` neighbours.
struct TransformPlan {
  explicit TransformPlan(std::size_t points);

  std::size_t points = 0;
  std::vector<TransformStep> steps;
  std::size_t last = 0;              ///< 16, or 8 for 8 points
  std::vector<std::uint16_t> first;  ///< of each last DFT its first coefficient; the others are `first.size()` apart
};

struct SquarePlan {
  explicit SquarePlan(std::size_t side);

  std::size_t side = 0;
  TransformPlan down;        ///< of a column's pixels as side / 2 complex numbers
  TransformPlan along;       ///< of a row's coefficients
  std::vector<float> roots;  ///< e^(-2 pi i k / side), k up to side / 4, [k][re, im]
};

/// Parts of one thread's scratch, in floats; enough for vectors of every width.
struct SquareScratch {
  /// \param width  columns that are transformed together, a window's at least
  SquareScratch(std::size_t side, std::size_t width);

  std::size_t spectra = 0;  ///< column spectra, a group of ky after the other
  std::size_t line = 0;     ///< a group's columns or rows between two steps
  std::size_t natural = 0;  ///< a group's columns in natural order
};

}  // namespace slidestream
